import { posix } from 'node:path';

/** The imports of a file of `src/`: files by their path below `src/`, packages by name. Type imports count too: a reader of the file needs them. */
export function importedBy(file: string, text: string): readonly string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
  const patterns = [
    /^\s*(?:import|export)\s[^'"`;]*?from\s*['"]([^'"]+)['"]/gm,
    /^\s*import\s*['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ];
  const specifiers = patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1] ?? ''));
  return [...new Set(specifiers)].map((specifier) =>
    specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : specifier,
  );
}
