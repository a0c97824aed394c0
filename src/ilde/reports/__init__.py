"""From run directories to statistics, tables, curves and one page: nothing here trains, plays or measures."""
