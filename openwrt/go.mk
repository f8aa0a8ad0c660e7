# SPDX-License-Identifier: Apache-2.0
# What the packages with Go programs share; included after PKG_NAME is set.

include ../source.mk

# What the programs are built from.
XDPL2_PARTS:=go.mod go.sum bpf cmd files internal uci LICENSES

PKG_BUILD_DEPENDS:=golang/host
PKG_BUILD_PARALLEL:=1
PKG_BUILD_FLAGS:=no-mips16
PKG_USE_MIPS16:=0
PKG_FILE_DEPENDS:=$(addprefix $(XDPL2_TREE)/,VERSION $(XDPL2_PARTS))

GO_PKG:=github.com/xdpl2/xdpl2
GO_PKG_BUILD_PKG:=$(GO_PKG)/cmd/$(PKG_NAME)
# Basic regular expressions. Only Go files are taken along otherwise, and these are
# embedded.
GO_PKG_INSTALL_EXTRA:=_bpfe[lb]\.o internal/reports/page\.html
GO_PKG_TAGS:=nethttpomithttp2
GO_PKG_LDFLAGS_X:=main.version=$(PKG_VERSION)

include $(INCLUDE_DIR)/package.mk
include $(TOPDIR)/feeds/packages/lang/golang/golang-package.mk

define Build/Prepare
	$(INSTALL_DIR) $(PKG_BUILD_DIR)
	$(CP) $(addprefix $(XDPL2_TREE)/,$(XDPL2_PARTS)) $(PKG_BUILD_DIR)/
endef

# $(call xdpl2_install,FOLDER): installs what the manifest lists.
define xdpl2_install
	while read -r mode path source conf; do \
		case "$$$$mode" in 0[0-7][0-7][0-7]) ;; *) continue ;; esac; \
		case "$$$$source" in \
		go:*) source="$(GO_PKG_BUILD_BIN_DIR)/$$$${source##*/}" ;; \
		*) source="$(PKG_BUILD_DIR)/$$$$source" ;; \
		esac; \
		$(INSTALL_DIR) "$(1)$$$${path%/*}" && \
		install -m "$$$$mode" "$$$$source" "$(1)$$$$path" || exit 1; \
	done < $(CURDIR)/$(PKG_NAME).manifest
endef
