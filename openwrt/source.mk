# SPDX-License-Identifier: Apache-2.0
# What the packages of this feed share. They are built from the checkout that
# the feed lies in, so that there is no archive whose address and hash would have
# to be kept in step: the version is that of the file VERSION.

XDPL2_TREE:=$(abspath $(CURDIR)/../..)

PKG_VERSION:=$(strip $(shell cat $(XDPL2_TREE)/VERSION))
PKG_RELEASE:=1
PKG_MAINTAINER:=The xdpl2 developers
PKG_LICENSE:=Apache-2.0
PKG_LICENSE_FILES:=LICENSES/Apache-2.0.txt

# $(call xdpl2_field,NAME): a field of the package's manifest, which is also what
# `make packages` goes by.
xdpl2_field=$(strip $(shell sed -n 's/^$(1): //p' $(PKG_NAME).manifest))
