// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xdpl2/xdpl2/internal/pack/usign"
)

// Keys are what feeds are signed with: opkg's key and apk's.
type Keys struct {
	Opkg    *usign.SecretKey
	APK     *ecdsa.PrivateKey
	APKFile string // what the apk tool is given
	Made    []string
}

// Names of the keys' files.
const (
	opkgSecret = "opkg.sec"
	apkSecret  = "apk.pem"
)

// LoadKeys reads the keys of a folder. Those that are missing are made there,
// once, and told in Made; a folder inside the tree is refused, since a secret
// that is in the repository by accident is worth nothing.
func LoadKeys(dir, tree string) (*Keys, error) {
	inside, err := isInside(dir, tree)
	if err != nil {
		return nil, err
	}
	if inside {
		return nil, fmt.Errorf("keys in %s: inside the source tree; give a folder outside of it", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of keys: %w", err)
	}
	k := &Keys{APKFile: filepath.Join(dir, apkSecret)}
	opkgFile := filepath.Join(dir, opkgSecret)
	text, err := k.load(opkgFile, func() ([]byte, error) {
		key, err := usign.Generate()
		if err != nil {
			return nil, err
		}
		return key.Marshal(), nil
	})
	if err != nil {
		return nil, err
	}
	if k.Opkg, err = usign.ParseSecretKey(text); err != nil {
		return nil, fmt.Errorf("%s: %w", opkgFile, err)
	}
	if text, err = k.load(k.APKFile, generateEC); err != nil {
		return nil, err
	}
	if k.APK, err = parseEC(text); err != nil {
		return nil, fmt.Errorf("%s: %w", k.APKFile, err)
	}
	return k, nil
}

// load reads a key's file, or makes it.
func (k *Keys) load(name string, generate func() ([]byte, error)) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err == nil {
		return text, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if text, err = generate(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	k.Made = append(k.Made, name)
	return text, nil
}

func generateEC() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func parseEC(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		return nil, errors.New("expected a PEM file with an EC PRIVATE KEY")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// APKPublic is the public key as apk wants it in /etc/apk/keys.
func (k *Keys) APKPublic() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&k.APK.PublicKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// isInside tells whether a folder, which need not exist, lies in another one.
func isInside(dir, tree string) (bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	tree, err = filepath.Abs(tree)
	if err != nil {
		return false, err
	}
	if tree, err = filepath.EvalSymlinks(tree); err != nil {
		return false, err
	}
	rest := ""
	for {
		resolved, err := filepath.EvalSymlinks(dir)
		if err == nil {
			rel, err := filepath.Rel(tree, filepath.Join(resolved, rest))
			return err == nil && filepath.IsLocal(rel), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return false, err
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = filepath.Dir(dir)
	}
}
