// SPDX-License-Identifier: Apache-2.0

// Package skipped is a test package with a test that no kernel runs, which must
// turn a whole run red. The runner's own tests boot it.
package skipped

import "testing"

func TestPasses(*testing.T) {}

func TestSkips(t *testing.T) { t.Skip("skipped on every kernel on purpose") }

func TestRig(t *testing.T) { t.Skip("not for guests: a rig on purpose") }
