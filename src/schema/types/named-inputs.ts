import { invalidDeclaration } from '../../errors.ts';
import { expandedText, type JsonSchema } from '../builder/json-schema.ts';

/** Named parts of inputs (`.meta({ id: 'ProductItem' })`): one type each, shared by all commands of a schema. */
export interface NamedInputs<Part> {
  /**
   * Returns the part with this name; creates it on first use. `root` is the input that contains `schema`.
   *
   * @throws RefoldError `INVALID_DECLARATION` if the name is used for a different schema
   */
  use(name: string, schema: JsonSchema, of: { root: JsonSchema; owner: string }, make: () => Part): Part;
}

export function createNamedInputs<Part>(): NamedInputs<Part> {
  const used = new Map<string, { readonly part: Part; readonly text: string; readonly owner: string }>();
  return {
    use(name, schema, { root, owner }, make) {
      const text = expandedText(schema, root);
      const known = used.get(name);
      if (known && known.text !== text)
        throw invalidDeclaration(
          owner,
          `its input has a schema with the id '${name}', which differs from that of ${known.owner}. Use one schema in both, or another id.`,
        );
      if (known) return known.part;
      const part = make();
      used.set(name, { part, text, owner });
      return part;
    },
  };
}
