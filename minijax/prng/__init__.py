"""Random. Where does chance come from, if functions repeat themselves?"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.
