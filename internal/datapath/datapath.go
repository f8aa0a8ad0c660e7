// SPDX-License-Identifier: Apache-2.0

// Package datapath loads the BPF programs, attaches them to network devices
// and keeps their maps. It knows engines and slots; it knows no bridge and no
// configuration (package control does).
//
// Everything here acts in the network namespace of the calling thread.
package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/xdpl2/xdpl2/bpf"
)

// MaxPorts is how many ports can be managed at once: the size of the maps that
// are indexed by slot.
const MaxPorts = 64

const defaultStations = 4096

// Options of a data path.
type Options struct {
	// MaxStations bounds the station table, 1 to 1,048,576; 0 means
	// 4096.
	MaxStations uint32
	// NoTCX makes the tc engine use clsact filters where tcx exists, too.
	NoTCX bool
}

// Datapath is the maps that all programs share, and the means to load more
// programs for them. It is safe for concurrent use, but the changes that one
// caller makes to one port must be made one after the other.
type Datapath struct {
	spec   *ebpf.CollectionSpec
	maps   bpf.DatapathMaps
	table  *table // in maps.Stations
	live   *live
	renew  *ebpf.Program
	noTCX  bool
	lease  lease
	asking sync.Mutex   // held while a program answers a question
	mu     sync.RWMutex // of spec and the station table, which may be replaced
	loaded programs
}

// Open creates the maps and has the kernel verify the programs once, so that
// a kernel that cannot run them is found before anything is attached. The
// error says what is missing, where that can be told.
func Open(opts Options) (*Datapath, error) {
	// Before 5.11 maps count against RLIMIT_MEMLOCK, 64 KiB by default.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("raise the memory lock limit (kernels before 5.11 need it for BPF maps): %w", err)
	}
	spec, err := bpf.LoadDatapath()
	if err != nil {
		return nil, fmt.Errorf("read the embedded BPF object: %w", err)
	}
	d := &Datapath{spec: spec}
	most := int(cmp.Or(opts.MaxStations, defaultStations))
	spec.Maps[bpf.DatapathMapStations].MaxEntries = uint32(linesFor(most))
	if err := d.specialise(spec, Program{}); err != nil {
		return nil, err
	}
	var objs struct {
		bpf.DatapathPrograms
		bpf.DatapathMaps
		Live *ebpf.Map `ebpf:".data.live"`
	}
	if err := spec.Copy().LoadAndAssign(&objs, nil); err != nil {
		return nil, explainLoad(err)
	}
	d.maps, d.renew = objs.DatapathMaps, objs.Xdpl2Renew
	d.noTCX = opts.NoTCX || !haveTCX(objs.Xdpl2Tc)
	if err = errors.Join(objs.Xdpl2Xdp.Close(), objs.Xdpl2XdpVlan.Close(), objs.Xdpl2Tc.Close(), objs.Xdpl2TcVlan.Close()); err == nil {
		d.live, err = mapLive(objs.Live)
	}
	if err == nil {
		d.table, err = mapTable(d.maps.Stations, most)
	}
	if err != nil {
		return nil, errors.Join(err, objs.Live.Close(), d.Close())
	}
	d.live.setEpoch(1)
	return d, nil
}

// explainLoad adds what a person can do about a program or map that the kernel
// refused.
func explainLoad(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("load the BPF programs: not permitted (needs root, or CAP_BPF and CAP_NET_ADMIN): %w", err)
	case errors.As(err, &verifier):
		return fmt.Errorf("load the BPF programs: refused by this kernel's verifier (Linux 5.10 or newer is needed): %w", err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("load the BPF programs: this kernel lacks BPF support (CONFIG_BPF_SYSCALL, Linux 5.10 or newer): %w", err)
	}
	return fmt.Errorf("load the BPF programs: %w", err)
}

// Close frees the maps. Programs that are still attached keep theirs alive.
func (d *Datapath) Close() error {
	d.stopLease()
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.loaded.forget(), d.renew.Close(), d.table.unmap(), d.live.Close(), d.maps.Close())
}

// Mode decides how a port's frames find their way.
type Mode uint32

// The two modes of the paper's section 3.2.
const (
	ModeMAC  = Mode(bpf.DatapathModeMODE_MAC)  // destination address decides
	ModePort = Mode(bpf.DatapathModeMODE_PORT) // the ingress port alone decides
)

// Program is what one port's program is specialised for when it is loaded.
type Program struct {
	Slot      uint32 // the port's own
	Mode      Mode
	Target    uint32 // ModePort: the slot that frames leave by
	PassLocal bool   // ModePort: frames to the box's own addresses go to the stack
	PassGroup bool   // ModePort: group frames go to the stack
	VLANs     bool   // ModeMAC: the bridge is VLAN-aware
	VLANAD    bool   // its tags are 802.1ad, not 802.1Q
	// Watch is for a port that is not accelerated: the program redirects and
	// counts nothing, it only removes stations that have moved there.
	Watch bool

	lease  bool // pass everything when the lease has run out
	trace  bool // keep the last decision in the answers map
	dryRun bool // change nothing
}

func (p Program) config() bpf.DatapathPortConfig {
	c := bpf.DatapathPortConfig{Slot: p.Slot, Mode: uint32(p.Mode), Target: p.Target}
	for flag, on := range map[bpf.DatapathConfigFlag]bool{
		bpf.DatapathConfigFlagCONFIG_PASS_LOCAL: p.PassLocal,
		bpf.DatapathConfigFlagCONFIG_PASS_GROUP: p.PassGroup,
		bpf.DatapathConfigFlagCONFIG_VLAN_AD:    p.VLANAD,
		bpf.DatapathConfigFlagCONFIG_WATCH:      p.Watch,
		bpf.DatapathConfigFlagCONFIG_LEASE:      p.lease,
		bpf.DatapathConfigFlagCONFIG_TRACE:      p.trace,
		bpf.DatapathConfigFlagCONFIG_DRY_RUN:    p.dryRun,
	} {
		if on {
			c.Flags |= uint32(flag)
		}
	}
	return c
}

// nameOf is the object's program for an engine and a port.
func nameOf(engine Engine, p Program) string {
	vlans := p.VLANs && p.Mode == ModeMAC
	switch {
	case engine == EngineTC && vlans:
		return bpf.DatapathProgXdpl2TcVlan
	case engine == EngineTC:
		return bpf.DatapathProgXdpl2Tc
	case vlans:
		return bpf.DatapathProgXdpl2XdpVlan
	}
	return bpf.DatapathProgXdpl2Xdp
}

// load returns one of the object's programs with a port's constants, for the
// caller to close. What was loaded before is not verified again: a port that
// tries two engines in turn changes them several times a second.
func (d *Datapath) load(engine Engine, p Program) (*ebpf.Program, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.loaded.get(nameOf(engine, p), p, d.verify)
}

// verify specialises and loads a program. The constants are frozen before the
// verifier runs, so it removes the branches that this port never takes.
func (d *Datapath) verify(name string, p Program) (*ebpf.Program, error) {
	spec := d.spec.Copy()
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	if err := d.specialise(spec, p); err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: d.shared()})
	if err != nil {
		return nil, explainLoad(err)
	}
	defer coll.Close()
	prog := coll.DetachProgram(name)
	runtime.KeepAlive(d)
	return prog, nil
}

// shared are the maps that all programs have, by their names in the object.
func (d *Datapath) shared() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{
		bpf.DatapathMapStations: d.maps.Stations,
		bpf.DatapathMapVlans:    d.maps.Vlans,
		bpf.DatapathMapEgress:   d.maps.Egress,
		bpf.DatapathMapCounters: d.maps.Counters,
		mapLiveName:             d.live.m,
		bpf.DatapathMapAnswers:  d.maps.Answers,
	}
}

// LoadBeside loads the programs of another object that is made of the data
// path's headers, with this data path's maps and a port's constants: the
// laboratory's programs, which take single steps.
func (d *Datapath) LoadBeside(spec *ebpf.CollectionSpec, p Program) (*ebpf.Collection, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	spec = spec.Copy()
	spec.Maps[bpf.DatapathMapStations].MaxEntries = d.maps.Stations.MaxEntries()
	if err := d.specialise(spec, p); err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: d.shared()})
	if err != nil {
		return nil, explainLoad(err)
	}
	return coll, nil
}

// specialise sets the constants of the programs of a spec.
func (d *Datapath) specialise(spec *ebpf.CollectionSpec, p Program) error {
	c := p.config()
	c.LineBits = leastBits
	if d.table != nil {
		c.LineBits, c.Multiplier = uint32(d.table.bits), d.table.multiplier<<(64-numberBits)
	}
	if err := spec.Variables[bpf.DatapathVarConfig].Set(c); err != nil {
		return fmt.Errorf("specialise the programs: %w", err)
	}
	return nil
}

// ResizeStations makes a table for another number of stations the one that
// PutStation and programs loaded from now on use. It is empty. Programs that
// are attached go on with the old one, which the caller closes when it has
// filled the new one and reloaded them (Attachment.Reload).
func (d *Datapath) ResizeStations(n uint32) (old io.Closer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	spec := d.spec.Maps[bpf.DatapathMapStations].Copy()
	spec.MaxEntries = uint32(linesFor(int(n)))
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make a table for %d stations: %w", n, err)
	}
	t, err := mapTable(m, int(n))
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if err := d.loaded.forget(); err != nil { // they have the old table
		return nil, errors.Join(err, t.Close())
	}
	d.spec.Maps[bpf.DatapathMapStations].MaxEntries = spec.MaxEntries
	old, d.table, d.maps.Stations = d.table, t, m
	return old, nil
}
