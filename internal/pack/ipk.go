// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"
	"strings"
)

// A Package is a manifest for one architecture, with everything that goes in.
type Package struct {
	*Manifest
	Version  string // with the release, such as 0.1.0-r1
	Arch     string
	Epoch    int64 // time of everything in it, in seconds since 1970
	Files    []File
	postinst []byte
}

// Project-wide fields of the control file.
const (
	projectURL  = "https://github.com/xdpl2/xdpl2"
	maintainer  = "The xdpl2 developers"
	license     = "Apache-2.0"
	licenseFile = "LICENSES/Apache-2.0.txt"
)

// FileName is the name that opkg's feeds use.
func (p *Package) FileName() string {
	return fmt.Sprintf("%s_%s_%s.ipk", p.Name, p.Version, p.Arch)
}

// The scripts that OpenWrt's build gives to every package: they enable and
// start its init scripts, and stop and disable them.
const (
	postinst = `#!/bin/sh
[ "${IPKG_NO_SCRIPT}" = "1" ] && exit 0
[ -s ${IPKG_INSTROOT}/lib/functions.sh ] || exit 0
. ${IPKG_INSTROOT}/lib/functions.sh
default_postinst $0 $@
`
	prerm = `#!/bin/sh
[ -s ${IPKG_INSTROOT}/lib/functions.sh ] || exit 0
. ${IPKG_INSTROOT}/lib/functions.sh
default_prerm $0 $@
`
)

// IPK is the package's file for opkg: a compressed tar archive of three
// members, not an ar archive as of Debian.
func (p *Package) IPK() ([]byte, error) {
	data, err := tarball(p.Files, p.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.FileName(), err)
	}
	control := []File{
		{Path: "/control", Mode: 0o644, Data: p.control(len(data))},
		{Path: "/postinst", Mode: 0o755, Data: []byte(postinst)},
		{Path: "/prerm", Mode: 0o755, Data: []byte(prerm)},
	}
	if p.postinst != nil {
		control = append(control, File{Path: "/postinst-pkg", Mode: 0o755, Data: p.postinst})
	}
	if conffiles := p.conffiles(); len(conffiles) > 0 {
		control = append(control, File{Path: "/conffiles", Mode: 0o644, Data: []byte(strings.Join(conffiles, "\n") + "\n")})
	}
	controlTar, err := tarball(control, p.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.FileName(), err)
	}
	members := []File{{Path: "/debian-binary", Mode: 0o644, Data: []byte("2.0\n")}}
	for name, tar := range map[string][]byte{"/data.tar.gz": data, "/control.tar.gz": controlTar} {
		compressed, err := compress(tar)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.FileName(), err)
		}
		members = append(members, File{Path: name, Mode: 0o644, Data: compressed})
	}
	// opkg wants the version first, then the data, then what controls it.
	slices.SortFunc(members[1:], func(a, b File) int { return strings.Compare(b.Path, a.Path) })
	outer, err := bareTarball(members, p.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.FileName(), err)
	}
	return compress(outer)
}

// conffiles are the paths of files that an upgrade must keep.
func (p *Package) conffiles() []string {
	var paths []string
	for _, f := range p.Files {
		if f.Conffile {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// control is the control file, its fields in the order of OpenWrt's own.
func (p *Package) control(installedSize int) []byte {
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	field("Package", p.Name)
	field("Version", p.Version)
	field("Depends", strings.Join(p.Depends, ", "))
	// No Recommends: opkg refuses the whole package if what is recommended is in
	// a feed, but made for another kernel.
	field("Source", p.source())
	field("SourceName", p.folder())
	field("License", license)
	field("LicenseFiles", licenseFile)
	field("Section", p.Section)
	field("SourceDateEpoch", fmt.Sprint(p.Epoch))
	field("URL", projectURL)
	field("Maintainer", maintainer)
	field("Architecture", p.Arch)
	field("Installed-Size", fmt.Sprint(installedSize))
	// As in OpenWrt's: the text begins in a line of its own.
	fmt.Fprintf(&b, "Description:  %s\n", strings.ReplaceAll(p.Description, "\n", "\n "))
	return []byte(b.String())
}

// source is where the package's Makefile is in a feed.
func (p *Package) source() string { return "feeds/xdpl2/openwrt/" + p.folder() }

// PlainArchive is a compressed tar archive of the package's files alone.
func (p *Package) PlainArchive() ([]byte, error) {
	archive, err := tarball(p.Files, p.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return compress(archive)
}
