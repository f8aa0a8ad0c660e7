# SPDX-License-Identifier: Apache-2.0
# Stand-in: `make describe` prints what a package says of itself, `make prepare`
# brings the sources into PKG_BUILD_DIR, `make install-PACKAGE` fills OUT/root.
PKG_BUILD_DIR?=$(BUILD_DIR)/$(PKG_NAME)-$(PKG_VERSION)

.PHONY: describe prepare
describe: ; @true

define BuildPackage
  TITLE:=
  DEPENDS:=
  $(eval $(call Package/$(1)))
  .PHONY: describe-$(1) install-$(1)
  export POSTINST_$(subst -,_,$(1)):=$$(Package/$(1)/postinst)
  describe: describe-$(1)
  describe-$(1):
	@echo 'package $(1)'
	@echo 'version $(PKG_VERSION)-r$(PKG_RELEASE)'
	@echo 'title $(TITLE)'
	@echo 'depends $(sort $(patsubst +%,%,$(filter +%,$(DEPENDS))))'
	@echo 'conffiles $(strip $(Package/$(1)/conffiles))'
	@echo 'description $(strip $(Package/$(1)/description))'
	@echo 'section $(SECTION)'
	@echo 'go $(GO_PKG_BUILD_PKG)'
	@echo 'tags $(GO_PKG_TAGS)'
	@echo 'ldflags $(GO_PKG_LDFLAGS_X)'
	@echo 'extra $(GO_PKG_INSTALL_EXTRA)'
	@printf 'postinst ' && printf '%s ' $$$$POSTINST_$(subst -,_,$(1)) && echo
	@echo 'depends-on-files $(PKG_FILE_DEPENDS)'
  prepare:
	$(call Build/Prepare)
  install-$(1):
	$(call Package/$(1)/install,$(OUT)/root)
endef
