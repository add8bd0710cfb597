"""Colours that are told apart with any eyes: those of Okabe and Ito, and one of Tol."""

BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
INDIGO = "#332288"
BLACK = "#000000"
GREY = "#7F7F7F"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INDIGO, BLACK)
