"""The commands of the plugin: one module each, with `run(session) -> Ending`, under the name by which it is called.

A command reads the cluster through a session, says what it found, and answers with how it ended. The only things
any of them writes are a PodMigration and the maintenance label of a node, both of which a user could write by hand.
`console.usage` has their arguments.
"""
