// SPDX-License-Identifier: Apache-2.0

// Command isstatic fails if an ELF file needs a dynamic loader.
package main

import (
	"debug/elf"
	"fmt"
	"os"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := static(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		fmt.Printf("%s is static\n", name)
	}
}

func static(name string) error {
	f, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("needs a dynamic loader")
		}
	}
	return nil
}
