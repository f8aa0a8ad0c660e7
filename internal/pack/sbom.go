// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The parts of CycloneDX 1.5 that say what is inside a program.
type (
	bom struct {
		Format       string        `json:"bomFormat"`
		SpecVersion  string        `json:"specVersion"`
		Version      int           `json:"version"`
		Metadata     bomMetadata   `json:"metadata"`
		Components   []bomPart     `json:"components"`
		Dependencies []bomRelation `json:"dependencies"`
	}
	bomMetadata struct {
		Timestamp string  `json:"timestamp"`
		Component bomPart `json:"component"`
	}
	bomPart struct {
		Type       string        `json:"type"`
		Ref        string        `json:"bom-ref"`
		Name       string        `json:"name"`
		Version    string        `json:"version"`
		PURL       string        `json:"purl,omitempty"`
		Hashes     []bomHash     `json:"hashes,omitempty"`
		Properties []bomProperty `json:"properties,omitempty"`
	}
	bomHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	bomProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	bomRelation struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// SBOM lists what is inside programs, as they themselves say (`go version -m`).
// The programs are named as they are in the release.
func SBOM(version string, programs map[string][]byte, epoch int64) ([]byte, error) {
	b := bom{
		Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: bomMetadata{
			Timestamp: time.Unix(epoch, 0).UTC().Format(time.RFC3339),
			Component: bomPart{Type: "application", Ref: "xdpl2", Name: "xdpl2", Version: version},
		},
	}
	modules := map[string]bomPart{}
	var names []string
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		info, err := buildinfo.Read(bytes.NewReader(programs[name]))
		if err != nil {
			return nil, fmt.Errorf("what is in %s: %w", name, err)
		}
		part := bomPart{
			Type: "application", Ref: name, Name: name, Version: version,
			Hashes: []bomHash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(programs[name]))}},
		}
		for _, s := range info.Settings {
			part.Properties = append(part.Properties, bomProperty{"go:build:" + s.Key, s.Value})
		}
		goVersion := strings.TrimPrefix(info.GoVersion, "go")
		uses := bomRelation{Ref: name, DependsOn: []string{addModule(modules, "std", goVersion)}}
		for _, d := range info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			uses.DependsOn = append(uses.DependsOn, addModule(modules, d.Path, d.Version))
		}
		slices.Sort(uses.DependsOn)
		b.Components = append(b.Components, part)
		b.Dependencies = append(b.Dependencies, uses)
	}
	var refs []string
	for ref := range modules {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		b.Components = append(b.Components, modules[ref])
	}
	out, err := json.MarshalIndent(b, "", "  ")
	return append(out, '\n'), err
}

// addModule notes a module and returns what it is referred to by.
func addModule(modules map[string]bomPart, path, version string) string {
	ref := "pkg:golang/" + path + "@" + version
	modules[ref] = bomPart{Type: "library", Ref: ref, Name: path, Version: version, PURL: ref}
	return ref
}
