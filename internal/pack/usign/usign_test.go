// SPDX-License-Identifier: Apache-2.0

package usign

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// read returns a file that the real usign made.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestAgainstUsign reads a key and a signature that OpenWrt's usign made, and
// makes the same signature: Ed25519 leaves no choice.
func TestAgainstUsign(t *testing.T) {
	public, err := ParsePublicKey(read(t, "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := ParseSecretKey(read(t, "key.sec"))
	if err != nil {
		t.Fatal(err)
	}
	message, signature := read(t, "message"), read(t, "message.sig")
	if err := public.Verify(message, signature); err != nil {
		t.Errorf("usign's signature: %v", err)
	}
	if got := secret.Sign(message); !bytes.Equal(got, signature) {
		t.Errorf("signed:\n%s\nusign signs:\n%s", got, signature)
	}
	if got := secret.Public().Marshal(); !bytes.Equal(got, read(t, "key.pub")) {
		t.Errorf("public key of the secret one:\n%s", got)
	}
	if got := secret.Marshal(); !bytes.Equal(got, read(t, "key.sec")) {
		t.Errorf("secret key, written again:\n%s", got)
	}
}

func TestChangedByte(t *testing.T) {
	key, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("Package: xdpl2\n")
	signature := key.Sign(message)
	if err := key.Public().Verify(message, signature); err != nil {
		t.Fatal(err)
	}
	for i := range message {
		changed := bytes.Clone(message)
		changed[i] ^= 1
		if err := key.Public().Verify(changed, signature); !errors.Is(err, ErrSignature) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	begin := bytes.IndexByte(signature, '\n') + 1
	for i := begin; i < len(signature)-1; i++ {
		changed := bytes.Clone(signature)
		if changed[i]++; changed[i] == '=' {
			changed[i] = 'A'
		}
		if err := key.Public().Verify(message, changed); err == nil {
			t.Errorf("byte %d of the signature changed, and it still fits", i)
		}
	}
	other, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Public().Verify(message, signature); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	key, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := ParseSecretKey(key.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublicKey(key.Public().Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if err := public.Verify([]byte("x"), secret.Sign([]byte("x"))); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	secret, public := string(read(t, "key.sec")), string(read(t, "key.pub"))
	first, second, _ := strings.Cut(secret, "\n")
	for name, c := range map[string]struct{ file, want string }{
		"no comment": {second, "expected \"untrusted comment: \""},
		"no base64":  {first + "\n???\n", "illegal base64"},
		"short":      {first + "\nRWQ=\n", "2 bytes in the second line (expected 104)"},
		"public":     {public, "42 bytes in the second line (expected 104)"},
		"more":       {secret + "more\n", "expected two lines"},
		"algorithm":  {first + "\nQ" + second[1:], "unknown algorithm"},
		"damaged":    {first + "\n" + second[:100] + "A" + second[101:], "damaged"},
	} {
		if _, err := ParseSecretKey([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	if _, err := ParsePublicKey([]byte(secret)); err == nil {
		t.Error("a secret key passes for a public one")
	}
}

// TestUsignReads asks the real program, where there is one.
func TestUsignReads(t *testing.T) {
	program, err := exec.LookPath("usign")
	if err != nil {
		t.Skip("no usign here; the recorded files of TestAgainstUsign stand for it")
	}
	key, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	message := []byte(strings.Repeat("x", 1000))
	for name, data := range map[string][]byte{
		"message": message, "message.sig": key.Sign(message), key.Fingerprint.String(): key.Public().Marshal(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(program, "-V", "-m", filepath.Join(dir, "message"), "-P", dir).CombinedOutput(); err != nil {
		t.Errorf("usign -V: %v: %s", err, out)
	}
}
