# SPDX-License-Identifier: Apache-2.0
# Stand-in: what LuCI copies, and where to.
LUCI_LANGUAGES:=$(filter-out templates,$(notdir $(wildcard $(CURDIR)/po/*)))

include $(INCLUDE_DIR)/package.mk

define Package/$(PKG_NAME)
  SECTION:=luci
  TITLE:=$(LUCI_TITLE)
  DEPENDS:=$(LUCI_DEPENDS)
endef

define Package/$(PKG_NAME)/description
  $(LUCI_DESCRIPTION)
endef

define Build/Prepare
	for d in htdocs root; do \
		if [ -d ./$$$$d ]; then mkdir -p $(PKG_BUILD_DIR)/$$$$d; $(CP) ./$$$$d/* $(PKG_BUILD_DIR)/$$$$d/; fi; \
	done
endef

define Package/$(PKG_NAME)/install
	if [ -d $(PKG_BUILD_DIR)/htdocs ]; then mkdir -p $(1)/www; cp -pR $(PKG_BUILD_DIR)/htdocs/* $(1)/www/; fi
	if [ -d $(PKG_BUILD_DIR)/root ]; then cp -pR $(PKG_BUILD_DIR)/root/* $(1)/; fi
endef

$(eval $(call BuildPackage,$(PKG_NAME)))
