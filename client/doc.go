// Package client is a ZooKeeper client: one session, all op codes from 3.4 to 3.10, over package proto.
package client
