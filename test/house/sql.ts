/** A statement, or a part of one that begins a line or a parenthesis. Lower or upper case, as SQL is written; prose begins with a capital. */
const statements = [
  'select\\b[^;]*?\\bfrom\\b',
  'select\\s+[\\w.]+\\(',
  'with\\s+\\w+\\s+as\\s+(?:(?:not\\s+)?materialized\\s+)?\\(',
  'insert\\s+into\\s',
  'update\\s+\\S+\\s+(?:as\\s+\\w+\\s+)?set\\s',
  'delete\\s+from\\s',
  '(?:create|alter|drop)\\s+(?:or\\s+replace\\s+)?(?:temporary\\s+|unique\\s+)?(?:table|view|index|schema|extension|function|trigger|sequence|role|database)\\s',
  'truncate\\s+(?:table\\s+)?\\w',
  'set\\s+(?:local|session)\\s',
  'begin\\s+(?:isolation|read|transaction)',
  '(?:un)?listen\\s+[\\w"$]+$',
];
const anySql = new RegExp(
  `(?:^|\\()\\s*(?:${statements.join('|')}|${statements.map((one) => one.replaceAll(/(?<!\\)[a-z]+/g, upper)).join('|')})`,
  'm',
);

/** The words of a pattern in upper case. */
function upper(words: string): string {
  return words.toUpperCase();
}

/** One sentence for each literal outside of `store/` that holds SQL. `sources`: path below `src/` to text. */
export function sqlOutsideStore(sources: ReadonlyMap<string, string>): readonly string[] {
  return [...sources]
    .filter(([file]) => !file.startsWith('store/'))
    .flatMap(([file, text]) => literals(text).map((literal) => ({ file, found: anySql.exec(literal)?.[0] })))
    .filter(({ found }) => found !== undefined)
    .map(
      ({ file, found }) => `${file} holds SQL ('${oneLine(found ?? '')}'), but all SQL lives in store/ and migrations/`,
    );
}

/** One sentence for each identifier that a file of `store/` quotes by itself. */
export function quotedByHand(sources: ReadonlyMap<string, string>): readonly string[] {
  return [...sources]
    .filter(([file]) => file.startsWith('store/') && file !== 'store/statements/identifiers.ts')
    .flatMap(([file, text]) =>
      [...withoutComments(text).matchAll(/(?<![:\\])"\$\{[^}]*\}"/g)].map(([found]) => ({ file, found })),
    )
    .map(
      ({ file, found }) =>
        `${file} quotes ${found} by hand; use sql.id, or quoted() of store/statements/identifiers.ts`,
    );
}

/** One sentence for each row of a statement, and each statement, that a file of `store/` asserts to be of a type. */
export function assertedRows(sources: ReadonlyMap<string, string>): readonly string[] {
  return [...sources]
    .filter(([file]) => file.startsWith('store/') && file !== 'store/statements/statement.ts')
    .flatMap(([file, text]) => {
      const code = withoutComments(text);
      const bound = [
        ...code.matchAll(/const (\[?[\w, ]+\]?) = await [\w.]*\b(?:query|run|runForOne|runPrepared)\b[<(]/g),
      ];
      const names = new Set(bound.flatMap(([, names = '']) => names.match(/\w+/g) ?? []));
      const isRow =
        names.size === 0 ? /(?!)/g : new RegExp(`\\b(?:${[...names].join('|')})(?:\\[\\w+\\])? as [A-Z{][^;,)]*`, 'g');
      const ofStatement = /\b\w+ as (?:CompiledQuery|TypedStatement)<[^>]*>+/g;
      return [...code.matchAll(isRow), ...code.matchAll(ofStatement)].map(([found]) => ({ file, found }));
    })
    .map(
      ({ file, found }) =>
        `${file} asserts '${found}'; declare the row type at the statement, and use onlyRow() for the row that is always there`,
    );
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ').slice(0, 60);
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|[\s;,{}()])\/\/.*$/gm, '$1');
}

/** The texts of string and template literals. A template within a template counts as a part of it. */
function literals(text: string): readonly string[] {
  const template = /`(?:[^`\\]|\\.)*`/.source;
  const strings = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/.source;
  return [...withoutComments(text).matchAll(new RegExp(`${strings}|${template}`, 'g'))].map(([literal]) =>
    literal.slice(1, -1),
  );
}
