// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Size is how large something is that users download or store.
type Size struct {
	Name  string // of the package or program
	Arch  string // its architecture
	Bytes int64
}

// Limits are the bounds of what goes onto a small router, by name and
// architecture.
var Limits = map[string]int64{
	"program xdpl2 aarch64_generic": 9 << 20,
	"package xdpl2 aarch64_generic": 3<<20 + 512<<10,
}

// FormatSizes writes sizes as ReadSizes reads them.
func FormatSizes(version string, sizes []Size) string {
	slices.SortFunc(sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Arch, b.Arch))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "# Sizes of version %s in bytes; the next one is compared with them.\n", version)
	for _, s := range sizes {
		fmt.Fprintf(&b, "%s %s %d\n", s.Name, s.Arch, s.Bytes)
	}
	return b.String()
}

// ReadSizes reads the sizes of an earlier release. A missing file has none.
func ReadSizes(name string) ([]Size, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read sizes: %w", err)
	}
	var sizes []Size
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(words) < 3 {
			return nil, fmt.Errorf("%s:%d: %q (expected: NAME ARCHITECTURE BYTES)", name, i+1, line)
		}
		last := len(words) - 1
		bytes, err := strconv.ParseInt(words[last], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q is no size", name, i+1, words[last])
		}
		sizes = append(sizes, Size{strings.Join(words[:last-1], " "), words[last-1], bytes})
	}
	return sizes, nil
}

// CompareSizes is a table of sizes and of the differences to earlier ones, and
// an error that names what exceeds its limit.
func CompareSizes(now, before []Size) (table string, err error) {
	earlier := map[[2]string]int64{}
	for _, s := range before {
		earlier[[2]string{s.Name, s.Arch}] = s.Bytes
	}
	var b strings.Builder
	var errs []error
	fmt.Fprintf(&b, "%-34s %-24s %10s %9s  %s\n", "WHAT", "ARCHITECTURE", "BYTES", "CHANGE", "LIMIT")
	for _, s := range now {
		change := "new"
		if old, ok := earlier[[2]string{s.Name, s.Arch}]; ok {
			change = fmt.Sprintf("%+d", s.Bytes-old)
		}
		limit := ""
		if n, ok := Limits[s.Name+" "+s.Arch]; ok {
			limit = fmt.Sprint(n)
			if s.Bytes > n {
				errs = append(errs, fmt.Errorf("%s for %s: %d bytes (at most %d)", s.Name, s.Arch, s.Bytes, n))
			}
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-34s %-24s %10d %9s  %s", s.Name, s.Arch, s.Bytes, change, limit), " ") + "\n")
		delete(earlier, [2]string{s.Name, s.Arch})
	}
	for _, s := range before {
		if _, gone := earlier[[2]string{s.Name, s.Arch}]; gone {
			fmt.Fprintf(&b, "%-34s %-24s %10s %9d\n", s.Name, s.Arch, "gone", -s.Bytes)
		}
	}
	return b.String(), errors.Join(errs...)
}
