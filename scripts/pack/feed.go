// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/pack"
)

// Names of the public keys in a feed, as routers get them.
const (
	opkgKeyName = "xdpl2-opkg.pub"
	apkKeyName  = "xdpl2-apk.pem"
)

//go:embed feed.html
var feedPage string

func feed(ctx context.Context, o *options, args []string) error {
	if err := o.noMore(args); err != nil {
		return err
	}
	epoch, err := pack.FindEpoch(ctx, o.root)
	if err != nil {
		return err
	}
	version, err := pack.ReadVersion(o.root)
	if err != nil {
		return err
	}
	return o.makeFeed(ctx, filepath.Join(o.root, packagesDir), o.outDir(feedDir), version, epoch)
}

// makeFeed makes feeds of a folder of packages: opkg/ARCHITECTURE and, if there
// are .apk files, apk/ARCHITECTURE, with a page that says how to use them.
func (o *options) makeFeed(ctx context.Context, packages, out, version string, epoch int64) error {
	keys, err := pack.LoadKeys(o.keys, o.root)
	if err != nil {
		return err
	}
	for _, name := range keys.Made {
		o.log("made the key %s; keep it: routers that trust it trust no other", name)
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	ipks, err := filepath.Glob(filepath.Join(packages, "*.ipk"))
	if err != nil {
		return err
	}
	if len(ipks) == 0 {
		return fmt.Errorf("%s: no packages there (make packages makes them)", packages)
	}
	page := feedContent{URL: strings.TrimSuffix(o.url, "/"), Version: version, Fingerprint: keys.Opkg.Fingerprint.String()}
	for _, t := range pack.Targets {
		dir := filepath.Join(out, "opkg", t.Arch)
		own := 0
		for _, ipk := range ipks {
			arch := strings.TrimSuffix(ipk, ".ipk")
			switch {
			case strings.HasSuffix(arch, "_"+t.Arch):
				own++
			case !strings.HasSuffix(arch, "_"+pack.All):
				continue
			}
			if err := copyFile(ipk, filepath.Join(dir, filepath.Base(ipk))); err != nil {
				return err
			}
		}
		if own == 0 { // not built for it
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			continue
		}
		if err := pack.WriteIndex(dir, keys.Opkg); err != nil {
			return err
		}
		if err := pack.CheckFeed(dir, keys.Opkg.Public()); err != nil {
			return fmt.Errorf("the feed just made is wrong: %w", err)
		}
		page.Opkg = append(page.Opkg, t.Arch)
	}
	if page.APK, err = o.apkFeeds(ctx, filepath.Join(packages, apkDir), filepath.Join(out, "apk"), keys, epoch); err != nil {
		return err
	}
	return o.finishFeed(out, keys, page)
}

// apkFeeds makes the feeds for apk, if there are packages, and returns their
// architectures.
func (o *options) apkFeeds(ctx context.Context, packages, out string, keys *pack.Keys, epoch int64) ([]string, error) {
	archs, err := os.ReadDir(packages)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tool, err := pack.FindAPK(ctx)
	if err != nil {
		return nil, err
	}
	var made []string
	for _, arch := range archs {
		if arch.Name() == pack.All {
			continue
		}
		dir := filepath.Join(out, arch.Name())
		for _, from := range []string{arch.Name(), pack.All} {
			apks, err := filepath.Glob(filepath.Join(packages, from, "*.apk"))
			if err != nil {
				return nil, err
			}
			for _, apk := range apks {
				if err := copyFile(apk, filepath.Join(dir, filepath.Base(apk))); err != nil {
					return nil, err
				}
			}
		}
		if err := tool.WriteAPKIndex(ctx, dir, keys.APKFile, epoch); err != nil {
			return nil, err
		}
		made = append(made, arch.Name())
	}
	return made, nil
}

// feedContent is what the page says.
type feedContent struct {
	URL, Version, Fingerprint string
	Opkg, APK                 []string
	OpkgKey, APKKey           string
}

// finishFeed writes the public keys and the page.
func (o *options) finishFeed(out string, keys *pack.Keys, page feedContent) error {
	apkPublic, err := keys.APKPublic()
	if err != nil {
		return err
	}
	page.OpkgKey, page.APKKey = opkgKeyName, apkKeyName
	text, err := page.render()
	if err != nil {
		return err
	}
	files := map[string][]byte{opkgKeyName: keys.Opkg.Public().Marshal(), "index.html": text}
	if len(page.APK) > 0 {
		files[apkKeyName] = apkPublic
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
	}
	o.log("feeds for %s in %s, to be found at %s", strings.Join(slices.Concat(page.Opkg, page.APK), ", "), out, page.URL)
	return nil
}

func (c feedContent) render() ([]byte, error) {
	t, err := template.New("feed").Parse(feedPage)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, c); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
