// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/test/luci/rpcd"
)

const scriptName = "/cgi-bin/luci"

// page is the frame that LuCI's server side puts around a view: the runtime is
// loaded, told what it has to know, and then loads the view.
var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="{{.Lang}}"{{if .Dark}} data-darkmode="{{.Dark}}"{{end}}>
<head>
<meta charset="utf-8">
<title>xdpl2</title>
<link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1">
{{if .Media}}<link rel="stylesheet" href="{{.Media}}/cascade.css">
{{if .Real}}<link rel="stylesheet" media="only screen and (max-device-width: 854px)" href="{{.Media}}/mobile.css">{{end}}{{end}}
<script>var TRANSLATIONS = {{.Translations}};</script>
<script src="/luci-static/resources/cbi.js"></script>
<script>
if (typeof sfh == 'function') {
	window.TR = {};
	for (var id in TRANSLATIONS)
		TR[sfh(id)] = TRANSLATIONS[id];
}
</script>
</head>
<body class="lang_{{.Lang}}" data-page="admin-network-xdpl2-{{.Tab}}">
<header><a class="brand" href="/">Router</a><ul class="nav" id="topmenu" style="display:none"></ul><div id="indicators" class="pull-right"></div></header>
<div id="maincontent" class="container">
<div id="tabmenu"><ul class="tabs">{{$tab := .Tab}}{{range .Tabs}}<li class="{{if eq . $tab}}active{{end}}"><a href="{{.}}">{{.}}</a></li>{{end}}</ul></div>
<script src="/luci-static/resources/promis.min.js"></script>
<script src="/luci-static/resources/luci.js"></script>
<script>L = new LuCI({{.Env}});</script>
<div id="view"><div class="spinning">Loading view…</div>
<script>L.require('ui').then(function(ui) { ui.instantiateView({{.View}}) });</script>
</div>
</div>
</body>
</html>
`))

// serveApply is how LuCI's "Save & Apply" reaches rpcd: through its server side,
// which knows the session by a token.
func serveApply(w http.ResponseWriter, r *http.Request, server *rpcd.Server) {
	token := r.FormValue("token")
	done := http.StatusNoContent
	var status ubus.Status
	switch r.PathValue("action") {
	case "apply_rollback":
		_, status = server.Local(token, "uci", "apply", rpcd.Table{"rollback": true, "timeout": 90.0})
		done = http.StatusOK
	case "apply_unchecked":
		_, status = server.Local(token, "uci", "apply", rpcd.Table{"rollback": false})
	case "confirm":
		_, status = server.Local(token, "uci", "confirm", nil)
	default:
		http.NotFound(w, r)
		return
	}
	switch {
	case status == ubus.StatusNoData:
		w.WriteHeader(http.StatusNoContent)
	case status != ubus.StatusOK:
		http.Error(w, status.Error(), http.StatusBadRequest)
	case done == http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
	default:
		w.WriteHeader(done)
	}
}

var tabs = []string{"overview", "settings", "explain", "benchmark"}

// pages serves the pages, LuCI's runtime, /ubus/, and commands for tests.
func pages(o *options, server *rpcd.Server, b *box) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/ubus/", server)
	mux.HandleFunc("GET "+scriptName+"/admin/network/xdpl2/{tab}", func(w http.ResponseWriter, r *http.Request) {
		if err := servePage(w, r, o, server); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST "+scriptName+"/admin/uci/{action}", func(w http.ResponseWriter, r *http.Request) { serveApply(w, r, server) })
	mux.HandleFunc("GET /luci-static/", func(w http.ResponseWriter, r *http.Request) { serveFile(w, r, o) })
	mux.HandleFunc("POST /test/{command}", func(w http.ResponseWriter, r *http.Request) {
		if err := b.command(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /test/config", func(w http.ResponseWriter, _ *http.Request) {
		text, err := os.ReadFile(b.file())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(text)
	})
	return mux
}

func (b *box) command(r *http.Request) error {
	switch r.PathValue("command") {
	case "start":
		return b.start()
	case "stop":
		return b.stop(syscall.SIGTERM)
	case "kill":
		return b.stop(syscall.SIGKILL)
	case "traffic-on":
		return b.traffic(true)
	case "traffic-off":
		return b.traffic(false)
	}
	return fmt.Errorf("no command %s", r.PathValue("command"))
}

// folders are where files below /luci-static/ come from: the app first.
func folders(o *options) []string {
	all := []string{filepath.Join(o.root, "luci-app/htdocs/luci-static")}
	if o.luci == "" {
		return append(all, filepath.Join(o.root, "test/luci/runtime"))
	}
	all = append(all, o.luci)
	if o.theme != "" {
		all = append(all, o.theme)
	}
	return all
}

func serveFile(w http.ResponseWriter, r *http.Request, o *options) {
	name := filepath.Clean("/" + strings.TrimPrefix(r.URL.Path, "/luci-static/"))
	for _, dir := range folders(o) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			http.ServeFile(w, r, path)
			return
		}
	}
	if strings.HasSuffix(name, "promis.min.js") { // newer LuCI has none
		w.Header().Set("Content-Type", "text/javascript")
		return
	}
	http.NotFound(w, r)
}

func servePage(w http.ResponseWriter, r *http.Request, o *options, server *rpcd.Server) error {
	tab, q := r.PathValue("tab"), r.URL.Query()
	if !slices.Contains(tabs, tab) {
		http.NotFound(w, r)
		return nil
	}
	user := q.Get("user")
	if user == "" {
		user = "root"
	}
	session, err := server.Login(user)
	if err != nil {
		return err
	}
	lang := q.Get("lang")
	translations := map[string]string{}
	if lang == "" {
		lang = "en"
	} else if translations, err = readPO(filepath.Join(o.root, "luci-app/po", lang, "xdpl2.po")); err != nil {
		return err
	}
	path := []string{"admin", "network", "xdpl2", tab}
	env, err := json.Marshal(map[string]any{
		"media": "/luci-static/bootstrap", "resource": "/luci-static/resources", "base_url": "/luci-static/resources",
		"scriptname": scriptName, "pathinfo": "/" + strings.Join(path, "/"), "documentroot": "/www",
		"requestpath": path, "dispatchpath": path, "pollinterval": 5, "ubuspath": "/ubus/", "sessionid": session.ID,
		"token":          session.ID,
		"nodespec":       map[string]any{"satisfied": true, "readonly": user == "viewer", "title": "XDP forwarding"},
		"apply_rollback": 90, "apply_holdoff": 1, "apply_timeout": 5, "apply_display": 1,
	})
	if err != nil {
		return err
	}
	media := ""
	if o.theme != "" || o.luci == "" {
		media = "/luci-static/bootstrap"
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return page.Execute(w, map[string]any{
		"Lang": lang, "Dark": q.Get("dark"), "Media": media, "Real": o.luci != "", "Translations": translations, "Tab": tab, "Tabs": tabs,
		"Env": template.JS(env), "View": "xdpl2/" + tab,
	})
}
