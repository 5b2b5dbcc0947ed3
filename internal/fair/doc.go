// Package fair shares bounded resources among strangers: how often something happens (Rate), how
// much is under way (Gauge), and places that newcomers take over (Places). Each is bounded per key,
// such as a host, so that nobody uses up everybody's share. The memory is bounded, too.
package fair
