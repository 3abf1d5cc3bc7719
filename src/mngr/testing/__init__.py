"""What tests of agents need and users may want too. Nothing of mngr imports it but the demo and tests."""
