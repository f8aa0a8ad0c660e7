// SPDX-License-Identifier: Apache-2.0

// Package usign makes and checks the signatures that opkg wants of a feed:
// Ed25519 in the file formats of OpenWrt's usign, which are those of OpenBSD's
// signify with other key numbers.
//
// Each file is a line with a comment and a line of base64. The key number (here
// called fingerprint, as usign does) is random; it is what opkg finds the public
// key by, as /etc/opkg/keys/FINGERPRINT.
package usign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// algorithm begins every key and every signature, and kdf follows it in a
// secret key. Zero rounds of it mean that the key is not encrypted.
const (
	algorithm = "Ed"
	kdf       = "BK"
)

const commentPrefix = "untrusted comment: "

// ErrSignature is returned for a signature that does not belong to a message.
var ErrSignature = errors.New("the signature does not fit")

// A Fingerprint names a key pair.
type Fingerprint [8]byte

// String is the name of the public key's file in /etc/opkg/keys.
func (f Fingerprint) String() string { return fmt.Sprintf("%x", f[:]) }

// A PublicKey checks signatures.
type PublicKey struct {
	Fingerprint Fingerprint
	Key         ed25519.PublicKey
}

// A SecretKey makes them.
type SecretKey struct {
	Fingerprint Fingerprint
	Key         ed25519.PrivateKey
	salt        [16]byte // of no use without encryption, but part of the file
}

// Layouts of what is inside the base64.
type (
	publicFile struct {
		Algorithm   [2]byte
		Fingerprint Fingerprint
		Key         [ed25519.PublicKeySize]byte
	}
	secretFile struct {
		Algorithm   [2]byte
		KDF         [2]byte
		Rounds      uint32
		Salt        [16]byte
		Checksum    [8]byte
		Fingerprint Fingerprint
		Key         [ed25519.PrivateKeySize]byte
	}
	signatureFile struct {
		Algorithm   [2]byte
		Fingerprint Fingerprint
		Signature   [ed25519.SignatureSize]byte
	}
)

// Generate makes a key pair.
func Generate() (*SecretKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	s := &SecretKey{Key: key}
	rand.Read(s.Fingerprint[:]) // never fails
	rand.Read(s.salt[:])
	return s, nil
}

// Public is the key that belongs to a secret one.
func (s *SecretKey) Public() *PublicKey {
	return &PublicKey{Fingerprint: s.Fingerprint, Key: s.Key.Public().(ed25519.PublicKey)}
}

// Marshal is the secret key's file.
func (s *SecretKey) Marshal() []byte {
	f := secretFile{Algorithm: [2]byte([]byte(algorithm)), KDF: [2]byte([]byte(kdf)), Salt: s.salt, Fingerprint: s.Fingerprint}
	copy(f.Key[:], s.Key)
	f.Checksum = checksum(f.Key)
	return encode("private key "+s.Fingerprint.String(), f)
}

// checksum guards a secret key against a wrong password.
func checksum(key [ed25519.PrivateKeySize]byte) [8]byte {
	sum := sha512.Sum512(key[:])
	return [8]byte(sum[:8])
}

// ParseSecretKey reads a secret key's file.
func ParseSecretKey(file []byte) (*SecretKey, error) {
	var f secretFile
	if err := decode(file, &f, "secret key"); err != nil {
		return nil, err
	}
	switch {
	case string(f.Algorithm[:]) != algorithm || string(f.KDF[:]) != kdf:
		return nil, fmt.Errorf("secret key: unknown algorithm %q, %q (expected %s, %s)", f.Algorithm, f.KDF, algorithm, kdf)
	case f.Rounds != 0:
		return nil, errors.New("secret key: it is protected by a password; such keys are not supported")
	case f.Checksum != checksum(f.Key):
		return nil, errors.New("secret key: damaged (its checksum differs)")
	}
	return &SecretKey{
		Fingerprint: f.Fingerprint,
		// The second half of what is stored is the public key; made again, so
		// that a file in which the halves differ makes no signatures that leak
		// the secret.
		Key:  ed25519.NewKeyFromSeed(f.Key[:ed25519.SeedSize]),
		salt: f.Salt,
	}, nil
}

// Marshal is the public key's file.
func (p *PublicKey) Marshal() []byte {
	f := publicFile{Algorithm: [2]byte([]byte(algorithm)), Fingerprint: p.Fingerprint}
	copy(f.Key[:], p.Key)
	return encode("public key "+p.Fingerprint.String(), f)
}

// ParsePublicKey reads a public key's file.
func ParsePublicKey(file []byte) (*PublicKey, error) {
	var f publicFile
	if err := decode(file, &f, "public key"); err != nil {
		return nil, err
	}
	if string(f.Algorithm[:]) != algorithm {
		return nil, fmt.Errorf("public key: unknown algorithm %q (expected %s)", f.Algorithm, algorithm)
	}
	return &PublicKey{Fingerprint: f.Fingerprint, Key: f.Key[:]}, nil
}

// Sign returns the file with a message's signature.
func (s *SecretKey) Sign(message []byte) []byte {
	f := signatureFile{Algorithm: [2]byte([]byte(algorithm)), Fingerprint: s.Fingerprint}
	copy(f.Signature[:], ed25519.Sign(s.Key, message))
	return encode("signed by key "+s.Fingerprint.String(), f)
}

// Verify checks a message against the file with its signature.
func (p *PublicKey) Verify(message, file []byte) error {
	var f signatureFile
	if err := decode(file, &f, "signature"); err != nil {
		return err
	}
	switch {
	case string(f.Algorithm[:]) != algorithm:
		return fmt.Errorf("signature: unknown algorithm %q (expected %s)", f.Algorithm, algorithm)
	case f.Fingerprint != p.Fingerprint:
		return fmt.Errorf("%w: it was made by key %s, not by %s", ErrSignature, f.Fingerprint, p.Fingerprint)
	case !ed25519.Verify(p.Key, message, f.Signature[:]):
		return fmt.Errorf("%w: the message or the signature was changed", ErrSignature)
	}
	return nil
}

// encode writes a comment and a layout.
func encode(comment string, layout any) []byte {
	var raw bytes.Buffer
	if err := binary.Write(&raw, binary.BigEndian, layout); err != nil {
		panic(err) // a layout that binary cannot write is a mistake in this file
	}
	return fmt.Appendf(nil, "%s%s\n%s\n", commentPrefix, comment, base64.StdEncoding.EncodeToString(raw.Bytes()))
}

// decode reads a layout from a file.
func decode(file []byte, layout any, what string) error {
	comment, rest, ok := strings.Cut(string(file), "\n")
	if !ok || !strings.HasPrefix(comment, commentPrefix) {
		return fmt.Errorf("%s: expected %q and a text in the first line", what, commentPrefix)
	}
	text, tail, _ := strings.Cut(rest, "\n")
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(text, "\r"))
	if err != nil {
		return fmt.Errorf("%s: second line: %w", what, err)
	}
	if strings.TrimSpace(tail) != "" {
		return fmt.Errorf("%s: expected two lines, got more", what)
	}
	if want := binary.Size(layout); len(raw) != want {
		return fmt.Errorf("%s: %d bytes in the second line (expected %d)", what, len(raw), want)
	}
	if err := binary.Read(bytes.NewReader(raw), binary.BigEndian, layout); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
