// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/xdpl2/xdpl2/internal/api"
)

func explainCommand() *command {
	var q api.ExplainQuery
	return &command{
		name: "explain", json: true,
		short: "Tell what would become of a frame now, and why",
		long: "It asks the port's own program, with what it knows at the moment; nothing is sent. For example:\n\n" +
			"    xdpl2 explain --device eth1 --dst 02:00:00:00:00:02",
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&q.Device, "device", "", "the `DEVICE` where the frame arrives")
			fs.StringVar(&q.Destination, "dst", "", "the `ADDRESS` that it goes to")
			fs.StringVar(&q.Source, "src", "", "the `ADDRESS` that it comes from (without it, a station that is known behind the device)")
			fs.IntVar(&q.VLAN, "vlan", 0, "the `VLAN` of its tag, 1 to 4094; 0: untagged")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			if q.Device == "" || q.Destination == "" {
				return usagef("--device and --dst are needed: where the frame arrives, and where it goes to")
			}
			ctx, cancel, client := e.client(ctx)
			defer cancel()
			answer, err := client.Explain(ctx, q)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(answer)
			}
			fmt.Fprintf(e.stdout, "%s: %s\n", answer.Verdict, answer.Text)
			return nil
		},
	}
}
