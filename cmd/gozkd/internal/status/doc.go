// Package status is gozkd status and gozkd ruok: what servers say of themselves, as an exit status for scripts and health checks.
//
// Both ask with four-letter words that every server answers, so they work with gozkd and Apache ZooKeeper whatever the whitelist says.
package status
