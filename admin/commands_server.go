package admin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/server"
)

func readOnly(s *server.Facts) bool { return s.Status().Mode == "read-only" }

// monitor answers with the lines of the mntr word. Those per namespace have paths in their keys,
// and are only for callers that may see paths, as are the paths of the largest subtrees.
func monitor(h *handler, r *http.Request) (answer object, _ error) {
	_, err := h.admit(r, local)
	for _, v := range h.server.Facts().Monitor() {
		if err != nil && strings.HasSuffix(v.Name, "_per_namespace") {
			continue
		}
		if v.Name == "gozkd_data_status" {
			v.Is = h.growth(r)
		}
		for key, is := range v.Lines() {
			answer = append(answer, field{key, is})
		}
	}
	return answer, nil
}

func value(values []server.Value, name string) any {
	if i := slices.IndexFunc(values, func(v server.Value) bool { return v.Name == name }); i >= 0 {
		return values[i].Is
	}
	return nil
}

func serverStats(s *server.Facts) object {
	values := s.Monitor()
	pick := func(name string) any { return value(values, name) }
	settings := settingsOf(s)
	zxid, _ := s.Digest()
	answer := object{
		{"version", pick("version")},
		{"read_only", readOnly(s)},
		{"server_stats", object{
			{"packets_sent", pick("packets_sent")},
			{"packets_received", pick("packets_received")},
			{"fsync_threshold_exceed_count", pick("fsync_threshold_exceed_count")},
			{"data_dir_size", settings["dataDirSize"]},
			{"log_dir_size", settings["dataLogSize"]},
			{"last_processed_zxid", zxid},
			{"outstanding_requests", pick("outstanding_requests")},
			{"server_state", pick("server_state")},
			{"avg_latency", pick("avg_latency")},
			{"max_latency", pick("max_latency")},
			{"min_latency", pick("min_latency")},
			{"num_alive_client_connections", pick("num_alive_connections")},
			{"uptime", pick("uptime")},
			{"auth_failed_count", pick("auth_failed_count")},
			{"non_mtlsremote_conn_count", pick("non_mtls_remote_conn_count")}, // so it is written
			{"non_mtlslocal_conn_count", pick("non_mtls_local_conn_count")},
		}},
	}
	if last := pick("last_proposal_size"); last != nil {
		answer = append(answer, field{"proposal_stats", object{
			{"last_buffer_size", last},
			{"min_buffer_size", pick("min_proposal_size")},
			{"max_buffer_size", pick("max_proposal_size")},
		}})
	}
	return append(answer, field{"node_count", pick("znode_count")})
}

func stats(s *server.Facts) object {
	return append(serverStats(s), connectionLists(s, false)...)
}

func environment(s *server.Facts) (answer object) {
	for _, setting := range s.Environment() {
		answer = append(answer, field{setting.Key, setting.Value})
	}
	return answer
}

// settingsOf returns the settings. Numbers are int64.
func settingsOf(s *server.Facts) map[string]any {
	settings := make(map[string]any)
	for _, setting := range s.Settings() {
		settings[setting.Key] = setting.Value
		if n, err := strconv.ParseInt(setting.Value, 10, 64); err == nil {
			settings[setting.Key] = n
		}
	}
	return settings
}

// configuration answers with the settings that ZooKeeper has there. The conf word has more.
func configuration(s *server.Facts) object {
	settings := settingsOf(s)
	return object{
		{"client_port", settings["clientPort"]},
		{"data_dir", settings["dataDir"]},
		{"data_log_dir", settings["dataLogDir"]},
		{"tick_time", settings["tickTime"]},
		{"max_client_cnxns", settings["maxClientCnxns"]},
		{"min_session_timeout", settings["minSessionTimeout"]},
		{"max_session_timeout", settings["maxSessionTimeout"]},
		{"server_id", settings["serverId"]},
		{"client_port_listen_backlog", settings["clientPortListenBacklog"]},
	}
}

func dirs(s *server.Facts) object {
	settings := settingsOf(s)
	return object{{"datadir_size", settings["dataDirSize"]}, {"logdir_size", settings["dataLogSize"]}}
}

// hash answers with the newest digest. The digest is signed, because ZooKeeper's is a Java long.
func hash(s *server.Facts) object {
	zxid, digest := s.Digest()
	return object{{"digests", []object{{{"zxid", zxid}, {"digest", int64(digest)}}}}}
}

func traceMask(s *server.Facts) object { return object{{"tracemask", s.TraceMask()}} }

func setTraceMask(h *handler, r *http.Request) (object, error) {
	const wrong = "setTraceMask requires long traceMask argument"
	text := r.URL.Query().Get("traceMask")
	if text == "" {
		return nil, errors.New(wrong)
	}
	mask, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s, got %s", wrong, text)
	}
	h.server.Facts().SetTraceMask(mask)
	return object{{"tracemask", mask}}, nil
}
