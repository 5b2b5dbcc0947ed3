// Package fair shares what is bounded among strangers: how often something happens (Rate), how much
// is under way (Gauge), and places that newcomers take over (Places). Each is bounded per key, such
// as a host, so that nobody uses up what is for everybody. The memory is bounded, too.
package fair
