// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

func versionCommand() *command {
	return &command{
		name: "version", json: true,
		short: "Print the version",
		run: func(_ context.Context, e *env, _ []string) error {
			if e.json {
				return e.printJSON(map[string]string{"version": version})
			}
			_, err := fmt.Fprintf(e.stdout, "xdpl2-bench %s\n", version)
			return err
		},
	}
}
