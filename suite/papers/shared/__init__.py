"""Recipes that several papers train by: DeiT's, and those of the ResNet18 that two of them compare with."""
