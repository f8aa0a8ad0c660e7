# SPDX-License-Identifier: Apache-2.0
# A stand-in for OpenWrt's build system with as much of it as the feed's
# Makefiles touch, so that a test can run them. OUT is a folder to work in.
INCLUDE_DIR:=$(TOPDIR)/include
BUILD_DIR:=$(OUT)
INSTALL_DIR:=install -d -m0755
CP:=cp -fpR
comma:=,
