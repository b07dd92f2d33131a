"""What several papers train by: DeiT's recipes, and the ResNet18 that two of them compare with."""
