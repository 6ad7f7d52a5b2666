import { invalidDeclaration } from '../../errors.ts';

/** Tracks the owners of the names of types and fields. */
export interface TypeNames {
  /** Claims a type name. @throws RefoldError `INVALID_DECLARATION` naming both owners if it is taken */
  claim(name: string, owner: string): string;
  /** Claims a field name. @throws RefoldError `INVALID_DECLARATION` naming both owners if it is taken */
  claimField(type: string, field: string, owner: string): string;
  /** Returns who claimed a type name; undefined if nobody did. */
  ownerOf(name: string): string | undefined;
  /** Returns who claimed a field; undefined if nobody did. */
  ownerOfField(type: string, field: string): string | undefined;
}

const ownNames = [
  ...['Query', 'Mutation', 'Subscription', 'CommandPayload'],
  ...['PageInfo', 'Node', 'Meta', 'ProjectionStatus', 'VersionState'],
  ...['String', 'ID', 'Int', 'Float', 'Boolean'],
  ...['BigInt', 'Date', 'DateTime', 'Decimal', 'JSON', 'Position', 'SafeInt', 'UUID'],
  ...['SortDirection', 'NullableSortDirection', 'ChangeOperation', 'LagReason', 'AsOf'],
  ...['String', 'ID', 'Int', 'Boolean', 'BigInt', 'Date', 'DateTime', 'Decimal', 'UUID'].flatMap((scalar) => [
    `${scalar}Filter`,
    `Nullable${scalar}Filter`,
    `${scalar}Comparison`,
  ]),
  // Reserved by federation.
  ...['_Any', '_Entity', '_Service', 'FieldSet'],
];

export function createTypeNames(): TypeNames {
  const types = new Map(ownNames.map((name) => [name, 'Refold']));
  const fields = new Map<string, string>();

  function take(taken: Map<string, string>, name: string, what: string, owner: string): void {
    const other = taken.get(name);
    if (other !== undefined) {
      throw invalidDeclaration(
        owner,
        `${what} '${name}' belongs to ${other} already. Rename one of them, or set the 'graphql' names of a projection.`,
      );
    }
    taken.set(name, owner);
  }

  return {
    claim(name, owner) {
      if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(name))
        throw invalidDeclaration(owner, `'${name}' is not a valid name of a GraphQL type; use letters and digits.`);
      take(types, name, 'the GraphQL type name', owner);
      return name;
    },
    claimField(type, field, owner) {
      if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(field))
        throw invalidDeclaration(owner, `'${field}' is not a valid name of a GraphQL field; use letters and digits.`);
      take(fields, `${type}.${field}`, 'the GraphQL field', owner);
      return field;
    },
    ownerOf: (name) => types.get(name),
    ownerOfField: (type, field) => fields.get(`${type}.${field}`),
  };
}

/** `productItems` → `ProductItems` */
export function pascalCase(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
