"""What people decide about what agents ask for, and about what they ran."""
