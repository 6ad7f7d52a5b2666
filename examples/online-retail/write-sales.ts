import { generateSales } from './generated-sales.ts';

// node write-sales.ts NUMBER: at least so many lines in the form of the real file, the same at each run.
for (const line of generateSales(1, Number(process.argv[2] ?? 3000))) console.log(line);
