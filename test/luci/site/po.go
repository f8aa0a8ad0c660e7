// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// readPO reads the translations of a .po file that have one, by their message.
func readPO(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	var id, text string
	var to *string
	done := func() {
		if id != "" && text != "" {
			all[id] = text
		}
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		rest, isID := strings.CutPrefix(line, "msgid ")
		if isID {
			done()
			id, text, to = "", "", &id
		} else if r, ok := strings.CutPrefix(line, "msgstr "); ok {
			rest, to = r, &text
		} else if strings.HasPrefix(line, `"`) && to != nil {
			rest = line
		} else {
			continue
		}
		s, err := strconv.Unquote(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, line, err)
		}
		*to += s
	}
	done()
	return all, nil
}
