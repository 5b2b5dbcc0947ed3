package shell

// zooKeeperCommands are those that speak to the server and that ZooKeeper's shell has too.
func zooKeeperCommands() []*command {
	return nil
}
