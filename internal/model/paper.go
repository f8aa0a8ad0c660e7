// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/xdpl2/xdpl2/internal/results"

// PaperSource names where the numbers of Paper are from.
const PaperSource = "Table 4 of \"Generic XDP Under Embedded SoC Constraints: A Lightweight L2 Data Plane with Cost Decomposition Analysis\""

// table4 has a row for each size and mode: frames/s sent and received with
// their standard deviations, loss in percent, round trip time in ms.
var table4 = []struct {
	size             int
	engine           string
	sent, sentSD     float64
	received, recvSD float64
	loss             float64
	rtt, rttSD       float64
}{
	{64, "generic", 204224, 137, 204205, 13, 0, 0.455, 0.001},
	{64, results.EngineBridge, 177536, 69, 177540, 92, 0, 0.482, 0.002},
	{128, "generic", 191200, 39, 191754, 15, 0, 0.431, 0.005},
	{128, results.EngineBridge, 171584, 97, 171309, 207, 0.160, 0.458, 0.002},
	{256, "generic", 169728, 85, 169133, 100, 0.351, 0.455, 0.001},
	{256, results.EngineBridge, 156032, 95, 155850, 58, 0.117, 0.466, 0.002},
	{512, "generic", 156832, 62, 156423, 44, 0.261, 0.465, 0.002},
	{512, results.EngineBridge, 145056, 140, 144007, 131, 0.723, 0.480, 0.001},
	{1024, "generic", 146240, 104, 145301, 137, 0.642, 0.501, 0.001},
	{1024, results.EngineBridge, 140864, 236, 140232, 132, 0.449, 0.506, 0.001},
	{1280, "generic", 143008, 47, 142479, 80, 0.370, 0.554, 0.001},
	{1280, results.EngineBridge, 138656, 118, 139829, 118, 0, 0.558, 0.002},
	{1514, "generic", 144288, 112, 143435, 126, 0.591, 0.562, 0.001},
	{1514, results.EngineBridge, 137984, 186, 138574, 212, 0, 0.568, 0.001},
}

const (
	paperLink = 2.5e9 // bit/s
	paperRuns = 3
)

// Paper returns Table 4 as results. The published numbers are means and
// standard deviations of three runs; there are no single values.
func Paper() *results.File {
	f := results.New(results.Meta{
		Command: "wire", Source: PaperSource,
		Machine: results.Machine{
			CPU: "RK3588 (4 Cortex-A76, 4 Cortex-A55), one dominant core", Cores: 8, Arch: "arm64",
			Kernel: "5.10.221", System: "iStoreOS 22.03.7", NIC: "r8125 9.014.01-NAPI-RSS",
		},
		Set: map[string]string{
			"runs": "3", "run": "20 s, the middle 10 s count", "steering": "off, interrupts on one core",
			"round trips": "fping -c 5000 -p 1",
		},
		LeftOut: []string{"receive and drop: the paper did not measure the shared cost by itself"},
	})
	for _, row := range table4 {
		cell := func(work string, unit results.Unit, mean, sd float64) results.Cell {
			return results.Cell{
				Work: work, Input: results.Wire, Size: row.size, Link: paperLink, Engine: row.engine,
				Unit: unit, N: paperRuns, Mean: mean, SD: sd,
			}
		}
		rate := cell(workWire, results.FramesPerS, row.received, row.recvSD)
		rate.Loss, rate.CPU = results.Pointer(row.loss/100), results.Pointer(1)
		f.Cells = append(f.Cells, rate,
			cell(workOffered, results.FramesPerS, row.sent, row.sentSD),
			cell(workRTT, results.Microsecond, 1000*row.rtt, 1000*row.rttSD))
	}
	return f
}
