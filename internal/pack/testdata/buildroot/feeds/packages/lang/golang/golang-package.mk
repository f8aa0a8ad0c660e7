# SPDX-License-Identifier: Apache-2.0
# Stand-in: the test puts a file in the place of each program.
GO_PKG_BUILD_BIN_DIR:=$(PKG_BUILD_DIR)/bin
GO_ARCH_DEPENDS:=@(aarch64||arm||i386||mips||mipsel||riscv64||x86_64)
define GoBinPackage
endef
