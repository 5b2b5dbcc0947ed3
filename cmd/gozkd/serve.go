package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// serve runs a server until a signal ends it or its disk fails, or servers for tests.
func serve(inv *config.Invocation, logTo io.Writer) error {
	log := hclog.New(&hclog.LoggerOptions{
		Name: "gozkd", Level: hclog.LevelFromString(inv.LogLevel), Output: logTo, JSONFormat: inv.LogJSON,
	})
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if os.Getenv("GOGC") == "" {
		// Stopped by the signal that ends the program, which does not wait for it.
		go tuneGC(stop)
	}
	if inv.Kit() {
		return serveKit(stop, inv, log)
	}
	s, err := server.New(serverConfig(inv.Config, log))
	if err != nil {
		return err
	}
	if err := s.Start(stop); err != nil {
		if stop.Err() != nil {
			return nil // stopped before it was ready, as asked
		}
		return err
	}
	if inv.PortFile != "" {
		if err := writePortFile(inv.PortFile, ports{Client: s.ConnectString()}); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	select {
	case <-stop.Done():
		log.Info("stopping")
		return s.Close()
	case err := <-s.Err():
		return errors.Join(err, s.Close())
	}
}

// ports is the content of a port file.
type ports struct {
	Client  string       `json:"client"` // the connect string
	Members []memberPort `json:"members,omitempty"`
	Faults  string       `json:"faults,omitempty"` // the URL of the endpoint
}

type memberPort struct {
	ID     int    `json:"id"`
	Client string `json:"client"`
}

// writePortFile writes one JSON line with the addresses. The file appears whole, so that who waits for it can read it at
// once.
func writePortFile(path string, where ports) error {
	line, err := json.Marshal(where)
	if err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(tmp, append(line, '\n'), 0o644); err != nil {
		return fmt.Errorf("port file: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("port file: %w", err)
	}
	return nil
}

// serverConfig says in the server's terms what the operator said in ZooKeeper's.
func serverConfig(c config.Config, log hclog.Logger) server.Config {
	var lines []string
	for _, m := range c.Members {
		lines = append(lines, m.String())
	}
	return server.Config{
		MemberID: uint8(c.MyID), Members: lines, PeerListen: c.PeerListenAddress(), InitLimit: c.InitLimit, SyncLimit: c.SyncLimit,
		LinearizableReads: c.LinearizableReads,
		Dir:               c.DataDir, LogDir: c.DataLogDir, Listen: c.ListenAddress(),
		Tick: c.TickTime, MinSessionTimeout: c.MinSessionTimeout, MaxSessionTimeout: c.MaxSessionTimeout,
		MaxClientConns: orNone(c.MaxClientCnxns), MaxConns: orNone(c.MaxCnxns),
		MaxBuffer: int32(c.JuteMaxBuffer), OutstandingLimit: c.GlobalOutstandingLimit,
		SnapCount: c.SnapCount, SegmentBytes: c.PreAllocBytes, NoSync: !c.ForceSync, SyncWarning: max(c.FsyncWarningThreshold, time.Millisecond),
		SkipACL: c.SkipACL, SuperDigest: c.SuperDigest, DisableDigest: !c.DigestAuthEnabled, EnforceQuota: c.EnforceQuota,
		ReconfigEnabled: c.ReconfigEnabled, Words: c.Words(),
		ContainerInterval: c.ContainerCheckInterval, ContainerMaxPerMinute: c.ContainerMaxPerMinute,
		ContainerNeverUsed: orNone(c.ContainerMaxNeverUsed),
		ClientKeepAlive:    c.ClientTCPKeepAlive, HandshakeTimeout: c.HandshakeTimeout,
		Settings: []server.Setting{{Key: "clientPortListenBacklog", Value: strconv.Itoa(c.ClientPortListenBacklog)}},
		Logger:   log,
	}
}

// orNone turns ZooKeeper's "0 is no limit" into the server's "negative is no limit".
func orNone[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}
