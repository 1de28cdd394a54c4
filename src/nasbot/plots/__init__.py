"""What there is to see in a study: typed series of numbers, and the plots that show them."""
