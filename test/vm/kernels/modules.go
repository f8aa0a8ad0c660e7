// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wanted are the modules that tests use, in no kernel all of them: what is
// missing there is built in or not to be had.
var wanted = []string{
	"veth", "bridge", "8021q", "dummy", "tls", "bonding", "team", "macvlan", "tun", "ifb", "vxlan",
	"virtio_net", "virtio_mmio", "virtio_pci",
	"sch_ingress", "sch_fq_codel", "sch_tbf", "sch_htb", "sch_netem", "sch_cake",
	"cls_bpf", "cls_flower", "cls_matchall", "cls_u32",
	"act_bpf", "act_mirred", "act_vlan", "act_gact", "pktgen",
	"nf_tables", "nft_meta_bridge", "nft_reject_bridge", "nf_conntrack_bridge",
	"br_netfilter", "ebtables", "ebtable_filter", "nf_flow_table_inet", "nft_flow_offload", "xt_physdev",
	"iptable_filter", "ip6table_filter", "arptable_filter",
}

// A moduleTree is the modules of a kernel package, by name.
type moduleTree map[string]string

// findModules finds the modules below a folder.
func findModules(root string) (moduleTree, error) {
	tree := moduleTree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, ext := range []string{".ko", ".ko.xz"} {
			if name, ok := strings.CutSuffix(d.Name(), ext); ok {
				tree[moduleName(name)] = path
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find modules: %w", err)
	}
	if len(tree) == 0 {
		return nil, errors.New("find modules: the packages have none that can be read")
	}
	return tree, nil
}

// moduleName is a module's name as dependencies give it.
func moduleName(file string) string { return strings.ReplaceAll(file, "-", "_") }

// install copies the modules and what they depend on into a folder, and writes
// the order of loading.
func (t moduleTree) install(ctx context.Context, names []string, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var order []string
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		path, ok := t[name]
		if !ok || seen[name] {
			return nil
		}
		seen[name] = true
		target := filepath.Join(dir, name+".ko")
		if err := decompress(ctx, path, target); err != nil {
			return err
		}
		needs, err := dependencies(target)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, n := range needs {
			if err := add(moduleName(n)); err != nil {
				return err
			}
		}
		order = append(order, name)
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "order"), []byte(strings.Join(order, "\n")+"\n"), 0o644)
}

// decompress copies a module that may be compressed.
func decompress(ctx context.Context, source, target string) error {
	if strings.HasSuffix(source, ".xz") {
		return unxz(ctx, source, func(r io.Reader) error { return writeFile(target, 0o644, r) })
	}
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	return writeFile(target, 0o644, f)
}

// dependencies reads which modules a module needs, from its own description:
// the file modules.dep is made only when a kernel is installed.
func dependencies(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("has no .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf(".modinfo: %w", err)
	}
	for field := range bytes.SplitSeq(info, []byte{0}) {
		if needs, ok := strings.CutPrefix(string(field), "depends="); ok {
			return strings.FieldsFunc(needs, func(r rune) bool { return r == ',' }), nil
		}
	}
	return nil, nil
}
