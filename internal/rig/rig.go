// SPDX-License-Identifier: Apache-2.0

// Package rig measures what forwarding a frame costs, in network namespaces of its
// own.
package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// MAC addresses of the rig's frames when it has one station on each side.
// With more, the lowest 16 bits count.
var (
	Source      = net.HardwareAddr{0x02, 0, 0, 0x10, 0, 0}
	Destination = net.HardwareAddr{0x02, 0, 0, 0x20, 0, 0}
)

// Options describe the measuring rig.
type Options struct {
	// Stations is the number of MAC addresses on each side, a power of two up
	// to 65536; 0 means 1.
	Stations int
	// CallIPTables is BridgeOptions.CallIPTables of the rig's bridge.
	CallIPTables bool
	// OneCore has the generator's own core forward, for boxes that cannot keep
	// the two apart (see Unsupported). What generating costs is measured in each
	// slice, with the frames thrown away where they would be handed over, and
	// taken off.
	OneCore bool
	// Least is how many frames a slice has at least, and how many are sent at
	// once; 0 means 20,000, and 5000 with OneCore. With fewer, what the ring holds at the ends of a
	// slice counts, and the fixed cost of live frames.
	Least int
}

// Rig measures what forwarding a frame costs, on the core that does it. Its
// router has a bridge with two ports. Frames come in through a veth whose
// reception runs in a kernel thread of its own, pinned to one core, while the
// generator runs on another. They leave through a tap device that nobody
// reads, the cheapest sink there is: a veth would make the forwarding core pay
// for a receiving host as well. The thread's run time over the frames that
// reached the tap is the cost per frame, whatever else the machine does. It
// holds everything from the veth's receive ring to the tap's transmit function
// with the release of the frame; not a NIC's driver and interrupt. With
// Options.OneCore it is the time that passes, less the generator's share.
type Rig struct {
	Router  *netns.NS // the namespace with bridge and ports
	Bridge  string    // br-lan
	Ingress string    // the veth's name in it
	Egress  string    // the tap's name

	o      Options
	source *netns.NS        // where the generator runs
	from   net.HardwareAddr // the first address of the stations at the ingress
	to     net.HardwareAddr // of those at the egress
	lane   bool             // the router is another rig's
	cpus   [2]int           // of forwarding thread and generator
	tap    *os.File
	thread int // id of the forwarding thread

	jobs       chan func() // for the generator's thread
	done       chan struct{}
	generators map[Load]*generator
}

// least is Options.Least of most rigs.
const least = 20_000

const (
	rigSourceDev = "eth0"
	idleDev      = "eth1" // throws away what is sent on it
	bridgeName   = "br-lan"
)

// forwarding is BR_STATE_FORWARDING, as sysfs shows it.
const forwarding = "3"

// routerMAC is the bridge's own address.
var routerMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0xff}

// Unsupported tells why the rig cannot work here, nil if it can. Live
// frames are not asked for: only Roomy needs them. With Options.OneCore it
// needs namespaces, veth and tap devices only.
func Unsupported() error {
	if err := netns.Supported(); err != nil {
		return err
	}
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	if len(cpus) < 2 {
		return errors.New("only one CPU: forwarding and generator need one each")
	}
	if !HasThreadedNAPI() {
		return errors.New("kernel cannot thread the reception of a veth (Linux 5.13)")
	}
	return nil
}

// Require skips the test with the reason where the rig cannot work, or
// where its numbers would mean nothing.
func Require(t netns.TB) {
	t.Helper()
	if os.Getenv("XDPL2_GUEST") != "" {
		t.Skipf("not for guests: an emulated CPU's times say nothing")
	}
	if err := Unsupported(); err != nil {
		t.Skipf("needs the measuring rig: %v", err)
	}
}

// New builds the rig. Close takes it down.
func New(ctx context.Context, o Options) (*Rig, error) {
	o.Stations = max(o.Stations, 1)
	if o.Least <= 0 {
		o.Least = least
		if o.OneCore {
			o.Least = 5000 // every one of them costs its full time
		}
	}
	if o.Stations > 1<<16 || o.Stations&(o.Stations-1) != 0 {
		return nil, fmt.Errorf("rig with %d stations: expected a power of two up to 65536", o.Stations)
	}
	unsupported := Unsupported
	if o.OneCore {
		unsupported = netns.Supported
	}
	if err := unsupported(); err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	r := &Rig{
		Bridge: bridgeName, Ingress: uniqueName("xi"), Egress: uniqueName("xe"), o: o,
		from: Source, to: Destination,
		jobs: make(chan func()), done: make(chan struct{}), generators: make(map[Load]*generator),
	}
	cpus, err := allowedCPUs()
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	last := cpus[len(cpus)-1]
	if r.cpus = [2]int{last, last}; !o.OneCore {
		r.cpus = [2]int{cpus[0], cpus[1]}
	}
	go r.generate()
	if err := r.build(ctx); err != nil {
		r.Close()
		return nil, fmt.Errorf("build rig: %w", err)
	}
	return r, nil
}

// Lane adds a second way through the rig's router: its own two ports, stations
// and generator, with everything on one core, forwarding before the generator.
// With a lane on each of several cores, these forward at the same time. The
// rig is closed after its lanes.
func (r *Rig) Lane(ctx context.Context, cpu int) (*Rig, error) {
	number := byte(nameCounter.Add(1))
	l := &Rig{
		Router: r.Router, Bridge: r.Bridge, Ingress: uniqueName("xi"), Egress: uniqueName("xe"), lane: true, o: Options{Stations: 1, Least: least},
		from: net.HardwareAddr{0x02, 0, number, 0x10, 0, 0}, to: net.HardwareAddr{0x02, 0, number, 0x20, 0, 0}, cpus: [2]int{cpu, cpu},
		jobs: make(chan func()), done: make(chan struct{}), generators: make(map[Load]*generator),
	}
	go l.generate()
	if err := l.build(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("build lane: %w", err), l.Close())
	}
	return l, nil
}

// CPUs returns the CPUs that may be used, two or more.
func CPUs() ([]int, error) { return allowedCPUs() }

// generate is the generator's thread: pinned, and ended with the rig.
func (r *Rig) generate() {
	defer close(r.done)
	runtime.LockOSThread() // never unlocked: the thread ends with its pinning
	for job := range r.jobs {
		job()
	}
}

// onGenerator runs f on the generator's thread.
func (r *Rig) onGenerator(f func() error) error {
	result := make(chan error, 1)
	r.jobs <- func() { result <- f() }
	return <-result
}

func (r *Rig) build(ctx context.Context) error {
	var err error
	// No host speaks here: nothing but the measured frames shall come.
	if !r.lane {
		if r.Router, err = netns.NewQuiet("rig-router"); err != nil {
			return err
		}
	}
	if r.source, err = netns.NewQuiet("rig-source"); err != nil {
		return err
	}
	if err := r.addDevices(); err != nil {
		return err
	}
	if !r.lane {
		if err := r.Router.SetCallIPTables(r.o.CallIPTables); err != nil {
			return err
		}
	}
	if err := r.addStations(); err != nil {
		return err
	}
	place := r.threadIngress
	if r.o.OneCore {
		place = r.shareCore
	}
	if err := place(); err != nil {
		return err
	}
	for _, dev := range []string{r.Ingress, r.Egress} {
		if err := WaitForwarding(ctx, r.Router, dev); err != nil {
			return err
		}
	}
	return nil
}

// addDevices makes the veth, the tap and the bridge over them.
func (r *Rig) addDevices() error {
	h, err := r.Router.Handle()
	if err != nil {
		return err
	}
	if !r.lane {
		if err := AddBridge(h, r.Bridge); err != nil {
			return err
		}
	}
	br, err := r.Router.Link(r.Bridge)
	if err != nil {
		return err
	}
	veth := netlink.NewVeth(netns.Named(r.Ingress))
	veth.PeerName = rigSourceDev
	veth.PeerNamespace = netlink.NsFd(r.source.FD())
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("create ingress: %w", err)
	}
	if r.tap, err = OpenTap(r.Router, r.Egress); err != nil {
		return err
	}
	tap, err := r.Router.Link(r.Egress)
	if err != nil {
		return err
	}
	for _, l := range []netlink.Link{veth, tap} {
		if err := h.LinkSetMaster(l, br); err != nil {
			return fmt.Errorf("add %s to the bridge: %w", l.Attrs().Name, err)
		}
		if err := h.LinkSetUp(l); err != nil {
			return fmt.Errorf("set %s up: %w", l.Attrs().Name, err)
		}
	}
	// A veth takes a raw socket's frames through its NAPI, where the measured
	// thread is, only if the sending end does no segmentation of any kind;
	// otherwise the sender's core would forward them.
	err = r.source.Do(func() error {
		return errors.Join(
			netdev.SetFeature(rigSourceDev, netdev.TSO, false),
			netdev.SetFeature(rigSourceDev, netdev.GSO, false))
	})
	if err != nil {
		return err
	}
	sh, err := r.source.Handle()
	if err != nil {
		return err
	}
	source, err := r.source.Link(rigSourceDev)
	if err != nil {
		return err
	}
	if err := sh.LinkSetUp(source); err != nil {
		return fmt.Errorf("set %s up: %w", rigSourceDev, err)
	}
	return nil
}

// AddBridge makes a bridge that is up.
func AddBridge(h *netlink.Handle, name string) error {
	snooping := false
	br := &netlink.Bridge{LinkAttrs: netns.Named(name), MulticastSnooping: &snooping}
	br.HardwareAddr = routerMAC
	if err := h.LinkAdd(br); err != nil {
		return fmt.Errorf("create bridge: %w", err)
	}
	if err := h.LinkSetUp(br); err != nil {
		return fmt.Errorf("set bridge up: %w", err)
	}
	return nil
}

// OpenTap makes a tap device that lives as long as the file.
func OpenTap(ns *netns.NS, name string) (*os.File, error) {
	var tap *os.File
	err := ns.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/net/tun: %w", err)
		}
		ifr, err := unix.NewIfreq(name)
		if err == nil {
			ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
		}
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("create tap %s: %w", name, err)
		}
		tap = os.NewFile(uintptr(fd), name)
		return nil
	})
	return tap, err
}

// addStations tells the bridge where everybody is, so that it neither floods
// nor learns.
func (r *Rig) addStations() error {
	h, err := r.Router.Handle()
	if err != nil {
		return err
	}
	for dev, mac := range map[string]net.HardwareAddr{r.Ingress: r.from, r.Egress: r.to} {
		link, err := r.Router.Link(dev)
		if err != nil {
			return err
		}
		for i := range r.o.Stations {
			err := h.NeighAppend(&netlink.Neigh{
				Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, State: netlink.NUD_NOARP,
				LinkIndex: link.Attrs().Index, HardwareAddr: stationMAC(mac, i),
			})
			if err != nil {
				return fmt.Errorf("add station %d on %s: %w", i, dev, err)
			}
		}
	}
	return nil
}

func stationMAC(base net.HardwareAddr, i int) net.HardwareAddr {
	mac := append(net.HardwareAddr(nil), base...)
	mac[4], mac[5] = byte(i>>8), byte(i)
	return mac
}

// threadIngress pins the reception of the ingress and the generator, each to a
// core of its own.
func (r *Rig) threadIngress() error {
	var err error
	if r.thread, err = threadNAPI(r.Router, r.Ingress); err != nil {
		return err
	}
	if err := Pin(r.thread, r.cpus[0]); err != nil {
		return err
	}
	priority := 1
	if r.lane { // where the generator is: what it sent is forwarded at once
		priority = 2
	}
	if err := prefer(r.thread, priority); err != nil {
		return err
	}
	// As interrupt moderation does with a NIC: the thread looks for frames
	// every 200 us while they come. Woken by the first frame of each handful,
	// it would take them one by one from a generator that is slower than
	// itself, and the cheaper the way, the more would its waking up count.
	if r.lane {
		return r.preferGenerator()
	}
	for key, value := range map[string]string{"gro_flush_timeout": "200000", "napi_defer_hard_irqs": "10"} {
		if err := r.Router.WriteSys("class/net/"+r.Ingress+"/"+key, value); err != nil {
			return err
		}
	}
	return r.preferGenerator()
}

func (r *Rig) preferGenerator() error {
	return r.onGenerator(func() error {
		if err := prefer(0, 1); err != nil {
			return err
		}
		return Pin(0, r.cpus[1])
	})
}

// shareCore pins the generator to the core that forwards, too: a veth without a
// thread of its own is received on the sender's.
func (r *Rig) shareCore() error {
	h, err := r.source.Handle()
	if err != nil {
		return err
	}
	// The other end stays down. A device without carrier has the queue that
	// drops everything, which is all that idleDev is for.
	idle, err := netns.AddVeth(h, idleDev, "none")
	if err != nil {
		return fmt.Errorf("create %s: %w", idleDev, err)
	}
	if err := h.LinkSetUp(idle); err != nil {
		return fmt.Errorf("set %s up: %w", idleDev, err)
	}
	// Live frames are taken by a veth with NAPI only (GRO, Linux 5.13).
	err = r.Router.Do(func() error { return netdev.SetFeature(r.Ingress, netdev.GRO, true) })
	if err != nil && !errors.Is(err, netdev.ErrUnsupported) {
		return err
	}
	return r.onGenerator(func() error { return Pin(0, r.cpus[1]) })
}

// prefer lets a thread run before all ordinary ones; 0 is the calling thread.
// Others on the machine would not only make it wait, which does not count, but
// also take the caches from it each time, which does. A nice value does not
// help against other sessions where the kernel groups tasks by session. Slices
// are short, so the others hardly notice.
func prefer(thread, priority int) error {
	err := unix.SchedSetAttr(thread, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority),
	}, 0)
	if err == nil {
		return nil
	}
	// A control group may have no real-time share.
	if err := unix.Setpriority(unix.PRIO_PROCESS, thread, -20); err != nil {
		return fmt.Errorf("raise priority: %w", err)
	}
	return nil
}

// Close takes the rig down. Closing twice is fine.
func (r *Rig) Close() error {
	var errs []error
	if r.jobs != nil {
		close(r.jobs)
		<-r.done
		r.jobs = nil
	}
	if r.source != nil {
		errs = append(errs, r.source.Close())
	}
	if r.Router != nil && !r.lane {
		errs = append(errs, r.Router.Close())
	}
	if r.tap != nil {
		errs = append(errs, r.tap.Close())
		r.tap = nil
	}
	return errors.Join(errs...)
}

// counters is what the rig reads before and after a slice.
type counters struct {
	at        time.Time
	run       time.Duration // of the forwarding thread
	received  uint64        // frames at the ingress
	forwarded uint64        // frames at the tap
}

func (r *Rig) read() (counters, error) {
	in, err := r.Router.Link(r.Ingress)
	if err != nil {
		return counters{}, err
	}
	out, err := r.Router.Link(r.Egress)
	if err != nil {
		return counters{}, err
	}
	c := counters{at: time.Now()}
	if !r.o.OneCore {
		if c.run, err = runTime(r.thread); err != nil {
			return counters{}, err
		}
	}
	if s := in.Attrs().Statistics; s != nil {
		c.received = s.RxPackets
	}
	if s := out.Attrs().Statistics; s != nil {
		// The tap's queue is full after 1000 frames; from then on it drops
		// each one, at the same cost.
		c.forwarded = s.TxPackets + s.TxDropped
	}
	return c, nil
}
