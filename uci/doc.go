// SPDX-License-Identifier: Apache-2.0

// Package uci reads and writes the configuration files of OpenWrt with the
// exact meaning that libuci gives them, changes that are staged and not yet
// committed included.
//
// # Where a configuration lives
//
// A package, in UCI's words, is one file: /etc/config/network is the package
// "network". It is a sequence of sections, each of a type and with an optional
// name, that hold options with one value and lists with several:
//
//	config interface 'lan'
//		option proto 'static'
//		list dns '192.0.2.1'
//		list dns '192.0.2.2'
//
// "uci set" does not touch that file. It appends one line to a file of the same
// name in the save directory, /tmp/.uci, and everything that reads through
// libuci applies those lines on top. "uci commit" writes the result to
// /etc/config and empties the staged file. [Tree] does both.
//
// # Names
//
// A section without a name gets one made of its position and its type, such as
// cfg02614a: "cfg", the number of the section in hexadecimal (named ones count,
// two digits or more), and four digits that depend on the type alone. The number is
// not given out again when a section is deleted, and everything is counted anew
// after a commit. The other way to refer to a section is by type and position,
// @port[0] for the first of type port and @port[-1] for the last; named
// sections count there too. Every method that takes a section accepts both.
//
// # What a file may look like
//
// Bare words and "double quotes" know the backslash, which takes the next
// character as it is and joins lines at a line end; 'single quotes' know
// nothing. Neighbours join: 'a'"b"c is one word. Quoted text may span lines. A
// # starts a comment everywhere outside quotes, inside a bare word too.
// "option x ”" has no effect at all. An option that follows a list of the same
// name replaces it, a list that follows an option takes its value as the first
// item. A section that is opened again under the same name and type goes on; of
// another type it is an error. The line "package x" is checked and ignored.
//
// One error makes the whole file unloadable, and it is reported as a
// [ParseError] with its place. Staged lines are different: one that is malformed
// or does not apply is skipped, and listed in [Package.Ignored].
//
// # What is refused
//
// libuci trusts what it finds. This package reads a file only if it is a
// regular file of at most [MaxFileSize] bytes, and says so before it reads it;
// pipes and devices are never opened for reading. Symbolic links are followed
// in the configuration directory, where the administrator puts them (a commit
// writes to what the link points to), but not in the save directory: there a
// link, a file or a directory that belongs to neither root nor the caller, and
// a directory that others can write to, are an error that wraps [ErrUnsafe].
//
// A NUL byte in a file is no error by itself. As in libuci it ends what was
// read of its line so far, and the next line is glued on, which most often (not
// always) makes a parse error. Values with a NUL or another control character
// but tab, line feed and carriage return cannot be staged.
package uci
