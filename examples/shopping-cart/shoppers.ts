import type { Command } from '../../src/index.ts';
import { registerCustomer, updateCustomerProfile } from './customer.ts';
import { randomNumbers } from './random-numbers.ts';
import {
  addProductItem,
  cancelShoppingCart,
  confirmShoppingCart,
  openShoppingCart,
  removeProductItem,
} from './shopping-cart.ts';

export interface ShopperAction {
  readonly command: Command;
  readonly input: object;
}

interface OpenCart {
  readonly cartId: string;
  /** Pieces by product. */
  readonly items: Map<string, number>;
}

/**
 * The actions of random shoppers, one after another: they register, open carts, fill them, change their minds, confirm and cancel.
 * The same seed always yields the same actions. Answer each action with whether it was accepted; a refused cart gets no further actions.
 */
export function* shoppers(seed: number): Generator<ShopperAction, never, boolean> {
  const random = randomNumbers(seed);
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T; // below length
  const run = seed.toString(36);
  const customerIds: string[] = [];
  const carts: OpenCart[] = [];
  let cartsOpened = 0;

  const someProfile = () => {
    const [first, last] = [pick(firstNames), pick(lastNames)];
    return { name: `${first} ${last}`, email: `${first}.${last}@example.com`.toLowerCase(), city: pick(cities) };
  };
  const close = (cart: OpenCart) => void carts.splice(carts.indexOf(cart), 1);

  for (;;) {
    if (customerIds.length < fewestCustomers || random() < 0.02) {
      const customerId = `customer-${run}-${customerIds.length + 1}`;
      customerIds.push(customerId);
      yield { command: registerCustomer, input: { customerId, profile: someProfile() } };
      continue;
    }
    if (random() < 0.01) {
      yield { command: updateCustomerProfile, input: { customerId: pick(customerIds), profile: someProfile() } };
      continue;
    }
    if (carts.length < fewestCarts || random() < 0.1) {
      const cart = { cartId: `cart-${run}-${++cartsOpened}`, items: new Map() };
      const accepted = yield {
        command: openShoppingCart,
        input: { cartId: cart.cartId, customerId: pick(customerIds) },
      };
      if (accepted) carts.push(cart);
      continue;
    }
    const cart = pick(carts);
    const { cartId, items } = cart;
    const mood = items.size === 0 ? 0 : random();
    if (mood < 0.6) {
      const { productId, name, unitPrice } = pick(products);
      const quantity = 1 + Math.floor(random() * 3);
      const accepted = yield {
        command: addProductItem,
        input: { cartId, productItem: { productId, name, quantity, unitPrice } },
      };
      if (accepted) items.set(productId, (items.get(productId) ?? 0) + quantity);
      else close(cart);
    } else if (mood < 0.78) {
      const [productId, pieces] = pick([...items]);
      const quantity = 1 + Math.floor(random() * pieces);
      const accepted = yield { command: removeProductItem, input: { cartId, productId, quantity } };
      if (!accepted) close(cart);
      else if (quantity === pieces) items.delete(productId);
      else items.set(productId, pieces - quantity);
    } else {
      close(cart);
      yield { command: mood < 0.94 ? confirmShoppingCart : cancelShoppingCart, input: { cartId } };
    }
  }
}

// Enough to have something to list and to sort from the first minute.
const fewestCustomers = 5;
const fewestCarts = 4;

const products = [
  { productId: 'espresso-beans-1kg', name: 'Espresso beans, 1 kg', unitPrice: '18.90' },
  { productId: 'pour-over-kettle', name: 'Pour-over kettle, 0.9 l', unitPrice: '64.50' },
  { productId: 'paper-filters-100', name: 'Paper filters, 100 pieces', unitPrice: '4.25' },
  { productId: 'burr-grinder', name: 'Burr grinder, 40 mm', unitPrice: '129.00' },
  { productId: 'milk-jug', name: 'Milk jug, stainless steel', unitPrice: '15.95' },
  { productId: 'stoneware-mug', name: 'Stoneware mug, sea green', unitPrice: '11.40' },
  { productId: 'oat-biscuits', name: 'Oat biscuits, 250 g', unitPrice: '3.79' },
  { productId: 'green-tea-100g', name: 'Sencha green tea, 100 g', unitPrice: '9.99' },
  { productId: 'tea-strainer', name: 'Tea strainer, fine mesh', unitPrice: '6.10' },
  { productId: 'thermos-flask', name: 'Thermos flask, 0.75 l', unitPrice: '32.00' },
] as const;

const firstNames = ['Ada', 'Bruno', 'Chiara', 'Dmitri', 'Esra', 'Finn', 'Grace', 'Hana', 'Ines', 'Jonas'] as const;
const lastNames = ['Achterberg', 'Brandt', 'Costa', 'Dubois', 'Eriksen', 'Fischer', 'Greco', 'Hughes'] as const;
const cities = ['Amsterdam', 'Bologna', 'Cork', 'Dresden', 'Espoo', 'Freiburg', 'Ghent', 'Huesca'] as const;
