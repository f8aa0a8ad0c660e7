# SPDX-License-Identifier: Apache-2.0
# `make help` lists what can be made.

VERSION := $(shell cat VERSION)
LDFLAGS := -s -w -X main.version=$(VERSION)
# The control socket speaks plain HTTP/1.1: net/http's HTTP/2 would never run.
TAGS := nethttpomithttp2
GO_BUILD = CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags "$(LDFLAGS)"
# VM=0 leaves the kernels under QEMU out of `make test`.
VM ?= 1
# Of packages: ARCH=aarch64_generic,x86_64 makes only these, RELEASE=2 is the second
# package of the same version. Of feeds: where routers will find them, and where
# the signing keys are kept (outside of the tree; made at the first use).
ARCH ?=
RELEASE ?= 1
FEED_URL ?=
FEED_KEYS ?=
PACK = go run ./scripts/pack $(1) --tags $(TAGS) --release $(RELEASE) \
	$(if $(ARCH),--arch $(ARCH)) $(if $(FEED_URL),--url $(FEED_URL)) $(if $(FEED_KEYS),--keys $(FEED_KEYS))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: need-go ## build build/xdpl2 and build/xdpl2-bench for this machine
	@mkdir -p build
	$(GO_BUILD) -o build/xdpl2 ./cmd/xdpl2
	$(GO_BUILD) -o build/xdpl2-bench ./cmd/xdpl2-bench

.PHONY: build-arm64
build-arm64: need-go ## build build/xdpl2-arm64, the daemon for an aarch64 router
	@mkdir -p build
	GOOS=linux GOARCH=arm64 $(GO_BUILD) -o build/xdpl2-arm64 ./cmd/xdpl2
	@ls -l build/xdpl2-arm64

.PHONY: packages
packages: need-go ## make the OpenWrt packages in build/packages, no SDK needed; some: ARCH=aarch64_generic
	$(call PACK,packages)

.PHONY: feed
feed: packages ## make signed feeds of them in build/feed; FEED_URL=https://... FEED_KEYS=folder
	$(call PACK,feed)

.PHONY: release
release: need-go ## all of it from what is committed, with checksums and an SBOM, in dist
	$(call PACK,release)

.PHONY: demo
demo: need-go ## show a Linux bridge being accelerated in a lab router (30 s, root)
	@scripts/need-root demo
	@$(MAKE) --no-print-directory -s build
	@build/xdpl2-bench demo

.PHONY: demo-shell
demo-shell: need-go ## the same lab, left open with a shell in it (root)
	@scripts/need-root demo-shell
	@scripts/need ip:iproute2 ping:iputils-ping
	@$(MAKE) --no-print-directory -s build
	@build/xdpl2-bench demo --shell

.PHONY: bench
bench: need-go ## measure what the data path costs against its budgets (4 min, root); some of it: ONLY=program
	@scripts/need-root bench
	@$(MAKE) --no-print-directory -s build
	@build/xdpl2-bench budgets $(if $(ONLY),--only $(ONLY)) $(if $(OUT),--out $(OUT))

.PHONY: bench-gate
bench-gate: need-go ## measure that nothing is slower than the bridge (15 min, root); some of it: ONLY=tcp,latency
	@scripts/need-root bench-gate
	@$(MAKE) --no-print-directory -s build
	@build/xdpl2-bench gate $(if $(ONLY),--only $(ONLY)) $(if $(OUT),--out $(OUT))

.PHONY: test
test: need-go ## run every test, also on four aarch64 kernels under QEMU (root); VM=0 leaves these out
	@scripts/need-root test
	@scripts/need dbus-daemon:dbus busybox:busybox lua5.1:lua5.1
	CGO_ENABLED=0 go test -count=1 -p 1 ./...
	@$(MAKE) --no-print-directory test-luci
	@if [ "$(VM)" = 0 ]; then echo "VM=0: the tests on aarch64 kernels were left out"; else $(MAKE) --no-print-directory test-vm; fi

.PHONY: test-luci
test-luci: need-go ## run the tests of the LuCI pages, in a browser, too (root); XDPL2_LUCI=folder: in a real LuCI as well
	@scripts/need-root test-luci
	@scripts/need-luci browser
	@$(MAKE) --no-print-directory -s build
	go build -trimpath -o build/luci-site ./test/luci/site
	cd test/luci && node --test --test-reporter=spec *.test.mjs

.PHONY: luci-po
luci-po: ## bring the LuCI pages' translations in line with their messages
	@scripts/need-luci
	node test/luci/pot.mjs

.PHONY: test-vm
test-vm: need-go ## run the lab and data path tests on aarch64 kernels; one of them: KERNEL=5.10
	@scripts/need qemu-system-aarch64:qemu-system-arm xz:xz-utils
	go run ./test/vm $(if $(KERNEL),--kernel $(KERNEL)) $(if $(RUN),--run '$(RUN)')

.PHONY: test-parity
test-parity: need-go ## compare the bridge with and without xdpl2, as long as you like: N=20000 SEED=4000 ENGINE=tc (root)
	@scripts/need-root test-parity
	go test -count=1 -timeout 0 -v ./internal/parity -run 'TestParity$$' -scenarios $(or $(N),10000) $(if $(SEED),-seed $(SEED)) $(if $(ENGINE),-engine $(ENGINE))

.PHONY: test-packages
test-packages: packages ## make the packages, check them, and install one in a lab router (root)
	@scripts/need-root test-packages
	@scripts/need busybox:busybox ar:binutils
	XDPL2_PACKAGES=$(CURDIR)/build/packages go test -count=1 ./internal/pack/... ./scripts/pack ./test/install

.PHONY: vm-shell
vm-shell: need-go ## boot one kernel with daemon and lab inside: KERNEL=5.10
	@scripts/need qemu-system-aarch64:qemu-system-arm xz:xz-utils
	go run ./test/vm --shell --kernel $(or $(KERNEL),6.12)

.PHONY: generate
generate: need-go ## compile the BPF programs and make the Go bindings again
	@scripts/need clang-16:clang-16 llvm-strip-16:llvm-16
	go generate ./...

.PHONY: check
check: need-go ## formatting, vet, staticcheck, shellcheck, and that generated files are current
	@scripts/need clang-16:clang-16 llvm-strip-16:llvm-16 shellcheck:shellcheck mandoc:mandoc
	@scripts/need-luci
	scripts/check

.PHONY: clean
clean: ## remove what was built
	rm -rf build dist

.PHONY: need-go
need-go:
	@scripts/need-go
