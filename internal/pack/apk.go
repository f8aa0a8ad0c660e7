// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// APKIndexName is the index of a feed for apk.
const APKIndexName = "packages.adb"

// An APKTool is apk-tools 3. Its packages have a format of their own that only
// it writes.
type APKTool struct {
	program  string
	fakeroot string // "" if we are root
}

// FindAPK looks for the tool. The error says what is missing.
func FindAPK(ctx context.Context) (*APKTool, error) {
	t := &APKTool{}
	var err error
	if t.program, err = exec.LookPath("apk"); err != nil {
		return nil, errors.New("no program apk (apk-tools 3) here")
	}
	out, err := exec.CommandContext(ctx, t.program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", t.program, err)
	}
	if !strings.HasPrefix(string(out), "apk-tools 3.") {
		return nil, fmt.Errorf("%s is %q (expected apk-tools 3)", t.program, strings.TrimSpace(string(out)))
	}
	if os.Geteuid() != 0 {
		if t.fakeroot, err = exec.LookPath("fakeroot"); err != nil {
			return nil, errors.New("apk packages need root or the program fakeroot: apk takes the owners from the files")
		}
	}
	return t, nil
}

// run calls the tool.
func (t *APKTool) run(ctx context.Context, epoch int64, args ...string) error {
	args = append([]string{t.program}, args...)
	if t.fakeroot != "" {
		args = append([]string{t.fakeroot, "--"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// apkFiles are the package's files, and those in which OpenWrt's scripts look
// up what a package owns.
func (p *Package) apkFiles() []File {
	files := slices.Clone(p.Files)
	var list, static strings.Builder
	for _, f := range p.Files {
		fmt.Fprintln(&list, f.Path)
		if f.Conffile {
			fmt.Fprintf(&static, "%s %x\n", f.Path, sha256.Sum256(f.Data))
		}
	}
	add := func(suffix, text string) {
		files = append(files, File{Path: "/lib/apk/packages/" + p.Name + suffix, Mode: 0o644, Data: []byte(text)})
	}
	add(".list", list.String())
	if conffiles := p.conffiles(); len(conffiles) > 0 {
		add(".conffiles", strings.Join(conffiles, "\n")+"\n")
		add(".conffiles_static", static.String())
	}
	return files
}

// apkScripts are the package's scripts by type.
func (p *Package) apkScripts() map[string]string {
	const load = `[ -s ${IPKG_INSTROOT}/lib/functions.sh ] || exit 0
. ${IPKG_INSTROOT}/lib/functions.sh
export root="${IPKG_INSTROOT}"
`
	name := fmt.Sprintf("export pkgname=%q\n", p.Name)
	after := `[ "${IPKG_NO_SCRIPT}" = "1" ] && exit 0
` + load + name + `add_group_and_user
default_postinst
` + string(p.postinst)
	return map[string]string{
		"post-install":  "#!/bin/sh\n" + after,
		"post-upgrade":  "#!/bin/sh\nexport PKG_UPGRADE=1\n" + after,
		"pre-deinstall": "#!/bin/sh\n" + load + name + "default_prerm\n",
	}
}

// APKFileName is the name that apk's feeds use.
func (p *Package) APKFileName() string { return fmt.Sprintf("%s-%s.apk", p.Name, p.Version) }

// WriteAPK makes the package's file for apk in a folder.
func (t *APKTool) WriteAPK(ctx context.Context, p *Package, dir string) (err error) {
	stage, err := os.MkdirTemp("", "xdpl2-apk-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	root, scripts := filepath.Join(stage, "root"), filepath.Join(stage, "scripts")
	if err := os.Mkdir(scripts, 0o755); err != nil {
		return err
	}
	if err := layOut(root, p.apkFiles(), p.Epoch); err != nil {
		return err
	}
	arch := p.Arch
	if arch == All {
		arch = "noarch"
	}
	args := []string{"mkpkg", "--files", root, "--output", filepath.Join(dir, p.APKFileName())}
	for _, info := range []string{
		"name:" + p.Name, "version:" + p.Version, "description:" + strings.ReplaceAll(p.Description, "\n", " "),
		"arch:" + arch, "license:" + license, "origin:" + p.source(), "url:" + projectURL, "maintainer:" + maintainer,
	} {
		args = append(args, "--info", info)
	}
	if len(p.Depends) > 0 {
		args = append(args, "--info", "depends:"+strings.Join(p.Depends, " "))
	}
	for kind, text := range p.apkScripts() {
		file := filepath.Join(scripts, kind)
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			return err
		}
		args = append(args, "--script", kind+":"+file)
	}
	return t.run(ctx, p.Epoch, args...)
}

// layOut writes files into a folder with their modes and times.
func layOut(root string, files []File, epoch int64) error {
	when := time.Unix(epoch, 0)
	for _, e := range withFolders(files) {
		name := filepath.Join(root, filepath.FromSlash(e.name))
		if strings.HasSuffix(e.name, "/") {
			if err := os.MkdirAll(name, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(name, e.file.Data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(name, e.file.Mode.Perm()); err != nil { // whatever the umask is
			return err
		}
		if err := os.Chtimes(name, when, when); err != nil {
			return err
		}
	}
	return nil
}

// WriteAPKIndex indexes and signs the .apk files of a folder.
func (t *APKTool) WriteAPKIndex(ctx context.Context, dir, keyFile string, epoch int64) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.apk"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no packages to index", dir)
	}
	// Only the index is signed, as in OpenWrt's own feeds, hence --allow-untrusted.
	args := []string{"mkndx", "--allow-untrusted", "--sign-key", keyFile, "--output", filepath.Join(dir, APKIndexName)}
	return t.run(ctx, epoch, append(args, names...)...)
}
