// SPDX-License-Identifier: Apache-2.0

package control

// bridgeName is the bridge that decides where frames go, and that the mirror
// is asked about.
func (c *Controller) bridgeName() string { return c.config.Main.Bridge }
