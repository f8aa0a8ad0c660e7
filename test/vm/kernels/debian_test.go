// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseMirrors(t *testing.T) {
	tests := []struct {
		name, uris string
		want       []string
	}{
		{"nothing", "", nil},
		{"each once, security last", `'http://security.example/debian-security/dists/stable-security/InRelease' a 0 
'http://mirror.example/debian/dists/stable/InRelease' b 0 
'http://mirror.example/debian/dists/stable-updates/InRelease' c 0 
'http://mirror.example/debian/dists/stable/main/binary-amd64/Packages.xz' d 0 
'https://other.example/deb/dists/apps/InRelease' e 0 
`, []string{"http://mirror.example/debian", "https://other.example/deb", "http://security.example/debian-security"}},
		{"local", "'file:/srv/debian/dists/sid/InRelease' x 0 \n", []string{"file:/srv/debian"}},
		{"old form", "'http://mirror.example/debian/dists/sid/Release' x 0 \n", []string{"http://mirror.example/debian"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseMirrors(tt.uris); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseDepends(t *testing.T) {
	record := `Package: linux-image-9.9-cloud-arm64
Depends: kmod, linux-base (>= 4.3~) | dracut:any, linux-binary-9.9.1-cloud-arm64 (= 9.9.1-1)
Pre-Depends: linux-modules-9.9.1-cloud-arm64
Recommends: firmware-linux-free
Description: Depends: nothing
`
	want := []string{"kmod", "linux-base", "dracut", "linux-binary-9.9.1-cloud-arm64", "linux-modules-9.9.1-cloud-arm64"}
	if got := parseDepends(record); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var parts []string
	for _, name := range want {
		if part.MatchString(name) {
			parts = append(parts, name)
		}
	}
	if len(parts) != 2 {
		t.Errorf("parts of the kernel are %q", parts)
	}
}

func TestArchiveKeepsAptsFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "apt")
	a, err := newArchive(dir, "http://mirror.example/debian", "bookworm")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(dir, "sources.list"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(list), " http://mirror.example/debian bookworm main\n") {
		t.Errorf("sources.list is %q", list)
	}
	options := strings.Join(a.options, " ")
	for _, want := range []string{
		"Dir::State=" + dir, "Dir::State::lists=" + dir, "Dir::State::status=" + dir,
		"Dir::Cache=" + dir, "Dir::Etc::sourcelist=" + dir, "Dir::Etc::sourceparts=-",
	} {
		if !strings.Contains(options, "-o "+want) {
			t.Errorf("options lack %s", want)
		}
	}
}

// image is the smallest file that counts as an arm64 Image.
func image() []byte {
	b := make([]byte, 128)
	copy(b[56:], "ARM\x64")
	return b
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zboot packs a payload as an EFI program that unpacks itself.
func zboot(method string, payload []byte, size int) []byte {
	b := make([]byte, 64)
	copy(b, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], uint32(size))
	copy(b[24:], method)
	return append(b, payload...)
}

func TestPlainImage(t *testing.T) {
	packed := gzipped(t, image())
	tests := []struct {
		name string
		file []byte
		err  string
	}{
		{"plain", image(), ""},
		{"gzip", packed, ""},
		{"gzip with padding", append(bytes.Clone(packed), 0, 0, 0, 0), ""},
		{"EFI program", zboot("gzip", packed, len(packed)), ""},
		{"EFI program, another packer", zboot("zstd", packed, len(packed)), `"zstd"`},
		{"EFI program, cut", zboot("gzip", packed, len(packed)+1), "ends too early"},
		{"gzip of something else", gzipped(t, []byte("text")), "no arm64 kernel"},
		{"gzip, cut", packed[:len(packed)-12], "unpack"},
		{"empty", nil, "not an arm64 kernel"},
		{"x86", []byte(strings.Repeat("MZ", 64)), "not an arm64 kernel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plainImage(tt.file)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error is %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || !bytes.Equal(got, image()) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}

// koFile is an object file with nothing but a module's description.
func koFile(t *testing.T, modinfo string) string {
	t.Helper()
	names := "\x00.modinfo\x00.shstrtab\x00"
	const headerSize, sectionSize = 64, 64
	info, strs := uint64(headerSize), uint64(headerSize+len(modinfo))
	head := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_AARCH64), Version: 1,
		Shoff: strs + uint64(len(names)), Ehsize: headerSize,
		Shentsize: sectionSize, Shnum: 3, Shstrndx: 2,
	}
	copy(head.Ident[:], "\x7fELF\x02\x01\x01")
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: info, Size: uint64(len(modinfo))},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: strs, Size: uint64(len(names))},
	}
	var out bytes.Buffer
	for _, part := range []any{head, []byte(modinfo), []byte(names), sections} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestModulesInstall(t *testing.T) {
	root, target := t.TempDir(), filepath.Join(t.TempDir(), "modules")
	const base = "lib/modules/9.9/kernel/net/"
	writeFiles(t, root, map[string]string{
		base + "bridge.ko":        koFile(t, "license=GPL\x00depends=stp,llc\x00"),
		base + "802/stp.ko":       koFile(t, "depends=llc\x00"),
		base + "llc/llc.ko":       koFile(t, "depends=\x00"),
		base + "nf-tables.ko":     koFile(t, "depends=built_in\x00name=nf_tables\x00"),
		base + "unused.ko":        koFile(t, ""),
		"usr/share/doc/README.ko": "a file of another kind is not opened unless it is wanted",
	})
	tree, err := findModules(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.install(t.Context(), []string{"missing", "bridge", "nf_tables", "llc"}, target); err != nil {
		t.Fatal(err)
	}
	order, err := os.ReadFile(filepath.Join(target, "order"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(string(order)), " "); got != "llc stp bridge nf_tables" {
		t.Errorf("order is %s", got)
	}
	files, err := filepath.Glob(filepath.Join(target, "*.ko"))
	if err != nil || len(files) != 4 {
		t.Errorf("installed %v, %v", files, err)
	}
}

func TestModulesErrors(t *testing.T) {
	if _, err := findModules(t.TempDir()); err == nil {
		t.Error("a folder without modules is no error")
	}
	for name, content := range map[string]string{"not an object": "text", "no description": koFile(t, "")[:64]} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeFiles(t, root, map[string]string{"veth.ko": content})
			tree, err := findModules(root)
			if err != nil {
				t.Fatal(err)
			}
			if tree.install(t.Context(), []string{"veth"}, t.TempDir()) == nil {
				t.Error("no error")
			}
		})
	}
}

func TestOnly(t *testing.T) {
	root := t.TempDir()
	writeFiles(t, root, map[string]string{"boot/vmlinuz-1": "", "boot/config-1": "", "boot/config-2": ""})
	if got, err := only(root, "none/*", "boot/vmlinuz-*"); err != nil || filepath.Base(got) != "vmlinuz-1" {
		t.Errorf("got %s, %v", got, err)
	}
	for _, pattern := range []string{"boot/config-*", "none/*", "["} {
		if got, err := only(root, pattern); err == nil {
			t.Errorf("%s: got %s, want an error", pattern, got)
		}
	}
}

func TestDetail(t *testing.T) {
	tests := []struct{ stderr, want string }{
		{"", ""},
		{"broken\nmore\n", ": broken"},
		{"W: careful\nE: suite is gone\nE: more\n", ": suite is gone"},
	}
	for _, tt := range tests {
		if got := detail([]byte(tt.stderr)); got != tt.want {
			t.Errorf("detail(%q) is %q, want %q", tt.stderr, got, tt.want)
		}
	}
}
