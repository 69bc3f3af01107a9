"""Claims of Bohn, Griebel and Rieger (2019): a representer theorem for concatenations."""
