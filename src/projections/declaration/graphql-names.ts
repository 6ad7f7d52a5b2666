import pluralize from 'pluralize';
import { invalidDeclaration } from '../../errors.ts';
import type { GraphqlNames } from '../projection/projection.ts';
import { refuseUnknownKeys } from '../projection/refuse-unknown.ts';

/**
 * Checks the option `graphql` and derives missing names from the projection's name. `hasId`: whether the projection declares an `id` of its
 * own.
 */
export function graphqlNames(
  subject: string,
  name: string,
  hasId: boolean,
  given: Partial<GraphqlNames> = {},
): GraphqlNames {
  const single = name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const plural = pluralize(single);
  const derived = {
    type: single.charAt(0).toUpperCase() + single.slice(1),
    single,
    list: plural === single ? `${single}List` : plural,
    globalId: !hasId,
  };
  const full = { ...derived, ...given };
  refuseUnknownKeys(subject, 'graphql', full, Object.keys(derived));
  const { globalId, ...names } = full;
  if (typeof globalId !== 'boolean')
    throw invalidDeclaration(subject, `graphql.globalId is true or false, found ${String(globalId)}.`);
  if (globalId && hasId)
    throw invalidDeclaration(
      subject,
      `graphql.globalId adds a field 'id', but a column or relation has that name. Rename it, such as '${single}Id', or leave globalId out.`,
    );
  for (const [part, value] of Object.entries(names)) {
    if (!/^(?!__)[_A-Za-z][_0-9A-Za-z]*$/.test(value))
      throw invalidDeclaration(
        subject,
        `graphql.${part} '${value}' is not a valid GraphQL name; use letters, digits and _.`,
      );
  }
  if (full.single === full.list)
    throw invalidDeclaration(subject, `graphql.single and graphql.list are both '${full.list}'; they need two names.`);
  return Object.freeze(full);
}
