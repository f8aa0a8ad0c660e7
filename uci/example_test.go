// SPDX-License-Identifier: Apache-2.0

package uci_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/xdpl2/xdpl2/uci"
)

func Example() {
	dir, err := os.MkdirTemp("", "uci")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "network")
	text := "config interface lan\n\toption proto static\n\nconfig route\n\toption target 192.0.2.0/24\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	// On a router: NewTree(uci.DefaultConfigDir, uci.DefaultSaveDir)
	tree := uci.NewTree(dir, filepath.Join(dir, "staged"))
	if err := tree.Set("network", "lan", "dns", "192.0.2.1", "192.0.2.2"); err != nil {
		log.Fatal(err)
	}
	if err := tree.Set("network", "@route[0]", "target", "198.51.100.0/24"); err != nil {
		log.Fatal(err)
	}
	p, err := tree.Package("network")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(p.Changes())
	if err := tree.Commit(); err != nil {
		log.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", written)
	// Output:
	// network.lan.dns+='192.0.2.1'
	// network.lan.dns+='192.0.2.2'
	// network.cfg02c8b4.target='198.51.100.0/24'
	//
	// config interface 'lan'
	// 	option proto 'static'
	// 	list dns '192.0.2.1'
	// 	list dns '192.0.2.2'
	//
	// config route
	// 	option target '198.51.100.0/24'
}
